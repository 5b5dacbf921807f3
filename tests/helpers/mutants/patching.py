"""Patches that find the code they change by function and node, wherever it lies in the package and however it is formatted."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from textwrap import dedent, indent
from typing import Any

Rest = dict[tuple[int, int], ast.AST | list[ast.AST]]


@dataclass(frozen=True)
class Patch:
    """A node of a function, and the source that takes its place."""

    function: str
    """A function, method, class or constant by its qualified name, e.g. ``KeyedCounts.subkey``. If several have that name, a folder
    or a module before it says which one: ``noise.laplace:DiscreteLaplace.costing``. Decorators and signatures are part of it."""
    old: str
    """An expression, a named argument, or statements in a row, as Python source. It is in the function once. In it ``...`` stands
    for any expression, and as the last argument of a call for all further arguments."""
    new: str
    """The same kind as ``old``; statements may be more, fewer, or none. Here ``...`` is what it stood for, in order."""
    top: tuple[str, ...] = ()
    """Statements for the top of the file, such as imports."""


@dataclass
class Match:
    """The nodes that a patch replaces, and by the place of each ``...`` what it stands for: an expression, or arguments."""

    nodes: list[ast.AST]
    rest: Rest


def patched(sources: Mapping[str, str], patches: Iterable[Patch]) -> dict[str, str]:
    """The files that the patches change, each with its new source. ``sources`` are all files of the package."""
    changed: dict[str, str] = {}
    for patch in patches:
        now = {**sources, **changed}
        module, _, name = patch.function.rpartition(":")
        definitions = [
            (file, definition)
            for file, text in now.items()
            if not module or f".{module}." in f".{file.removesuffix('.py').replace('/', '.')}."
            for definition in _definitions(text).get(name, [])
        ]
        if len(definitions) != 1:
            raise _error(patch, "is defined", [f"{file}:{node.lineno}" for file, node in definitions], now)
        ((file, definition),) = definitions
        matches = _matches(definition, patch)
        if len(matches) != 1:
            raise _error(patch, "has this code", [f"{file}:{match.nodes[0].lineno}" for match in matches], now)
        changed[file] = _replaced(now[file], matches[0], patch)
    return changed


def _error(patch: Patch, what: str, found: list[str], sources: Mapping[str, str]) -> ValueError:
    remedy = f"Say which one, by a module before the function or by a larger node: {', '.join(found)}."
    if not found:
        same = [
            f"{file}:{match.nodes[0].lineno}"
            for file, text in sources.items()
            for match in _matches(ast.parse(text), patch)
        ]
        remedy = f"Such code is in {', '.join(same[:5])}." if same else "Such code is nowhere."
    return ValueError(f"{patch.function} {what} {len(found)} times: {patch.old!r}. {remedy}")


@cache
def _definitions(text: str) -> dict[str, list[ast.AST]]:
    """What a file defines, by qualified name."""
    found = defaultdict(list)

    def collect(parent: ast.AST, prefix: str) -> None:
        for node in ast.iter_child_nodes(parent):
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    found[prefix + name].append(node)
                    collect(node, f"{prefix}{name}.")
                case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                    found[prefix + name].append(node)
                case ast.stmt() | ast.excepthandler() | ast.match_case():
                    collect(node, prefix)

    collect(ast.parse(text), "")
    return found


def _matches(definition: ast.AST, patch: Patch) -> list[Match]:
    """Where the patch fits."""
    old, new = _argument(patch.old), _argument(patch.new)
    expressions = isinstance(old, ast.expr) and isinstance(new, ast.expr)
    named = isinstance(old, ast.keyword) and isinstance(new, ast.keyword)
    tried: list[tuple[list[ast.AST], list[ast.AST]]] = []
    if expressions or named:
        tried += [([old], [node]) for node in ast.walk(definition)]
    if not expressions:  # what looks like a named argument may be an assignment
        wanted = ast.parse(dedent(patch.old)).body
        tried += [(wanted, nodes) for nodes in _in_a_row(definition, len(wanted))]
    return [Match(nodes, rest) for wanted, nodes in tried if _fits(wanted, nodes, rest := {})]


def _argument(source: str) -> ast.AST | None:
    """Source as one argument of a call: an expression, or an argument by name. None if it is neither."""
    with suppress(SyntaxError):
        match ast.parse(f"_(\n{source}\n)", mode="eval").body:
            case ast.Call(args=[node], keywords=[]) | ast.Call(args=[], keywords=[node]):
                return node
    return None


def _in_a_row(definition: ast.AST, n: int) -> Iterator[list[ast.AST]]:
    """Each ``n`` statements that follow each other in a block."""
    for node in ast.walk(definition):
        for _, block in ast.iter_fields(node):
            if n and isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                yield from (block[i : i + n] for i in range(len(block) - n + 1))


def _fits(wanted: Any, node: Any, rest: Rest) -> bool:
    """Whether two trees are equal. What ``...`` stands for is added to ``rest``."""
    if _is_rest(wanted):
        rest[wanted.lineno, wanted.col_offset] = node
        return isinstance(node, ast.expr)
    if type(wanted) is not type(node):
        return False
    if isinstance(wanted, list):
        return len(wanted) == len(node) and all(
            _fits(one, other, rest) for one, other in zip(wanted, node, strict=True)
        )
    if isinstance(wanted, ast.Call) and wanted.args and _is_rest(wanted.args[-1]) and not wanted.keywords:
        *first, dots = wanted.args
        rest[dots.lineno, dots.col_offset] = [*node.args[len(first) :], *node.keywords]
        return _fits(wanted.func, node.func, rest) and _fits(first, node.args[: len(first)], rest)
    if isinstance(wanted, ast.AST):
        return all(_fits(getattr(wanted, name), getattr(node, name), rest) for name in wanted._fields)
    return wanted == node


def _is_rest(node: Any) -> bool:
    return isinstance(node, ast.Constant) and node.value is ...


def _replaced(text: str, match: Match, patch: Patch) -> str:
    """The source with the patch. All else stays as it is."""
    lines = text.encode().splitlines(keepends=True)  # columns of nodes are bytes
    whole = b"".join(lines)

    def span(nodes: list[ast.AST]) -> tuple[int, int]:
        starts = [_offset(lines, node.lineno, node.col_offset) for node in nodes]
        stops = [_offset(lines, node.end_lineno, node.end_col_offset) for node in nodes]
        return min(starts, default=0), max(stops, default=0)

    new, first = patch.new, match.nodes[0]
    if isinstance(first, ast.expr):
        new = f"({new})"
    if isinstance(first, ast.stmt):
        new = indent(dedent(new), " " * first.col_offset).lstrip()
    for _, part in sorted(match.rest.items()):
        start, stop = span(part if isinstance(part, list) else [part])
        code = whole[start:stop].decode()
        new = new.replace("...", code if isinstance(part, list) else f"({code})", 1)
    start, stop = span(match.nodes)
    begin = _offset(lines, _last_line_before_code(text) + 1, 0)
    top = "".join(f"{statement}\n" for statement in patch.top)
    return b"".join([whole[:begin], top.encode(), whole[begin:start], new.encode(), whole[stop:]]).decode()


def _offset(lines: list[bytes], line: int, column: int) -> int:
    return sum(map(len, lines[: line - 1])) + column


def _last_line_before_code(text: str) -> int:
    """The last line of the docstring and of imports from ``__future__``."""
    last = 0
    for node in ast.parse(text).body:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.ImportFrom(module="__future__"):
                last = node.end_lineno
            case _:
                break
    return last
