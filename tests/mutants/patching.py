"""Patches that find the code they change by function and node, wherever it lies in the package and however it is formatted."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from textwrap import dedent, indent

__all__ = ["Patch", "patched"]


@dataclass(frozen=True)
class Patch:
    """A node of a function, and the source that takes its place."""

    function: str
    """A function, method, class or constant by its qualified name, e.g. ``KeyedCounts.subkey``. If several have that name, a folder
    or a module before it says which one: ``noise.laplace:DiscreteLaplace.costing``. Decorators and signatures are part of it."""
    old: str
    """An expression, a named argument, or statements in a row, as Python source. It is in the function once."""
    new: str
    """Of the same kind as ``old``. Statements may be more, fewer, or none."""
    top: tuple[str, ...] = ()
    """Statements for the top of the file, such as imports."""


def patched(sources: Mapping[str, str], patches: Iterable[Patch]) -> dict[str, str]:
    """The files that the patches change, each with its new source. ``sources`` are all files of the package."""
    changed: dict[str, str] = {}
    for patch in patches:
        file, text, definition = _found(patch.function, {**sources, **changed})
        changed[file] = _replaced(text, _place(definition, patch), patch)
    return changed


def _found(function: str, sources: Mapping[str, str]) -> tuple[str, str, ast.AST]:
    """The file and the definition with that name."""
    module, _, name = function.rpartition(":")
    found = [
        (file, text, definition)
        for file, text in sources.items()
        if not module or f".{module}." in f".{file.removesuffix('.py').replace('/', '.')}."
        for definition in _definitions(text).get(name, [])
    ]
    if len(found) != 1:
        lines = ", ".join(f"{file}:{definition.lineno}" for file, _, definition in found)
        remedy = f"Name the folder or module of one, as in module:{name}: {lines}" if found else "Was it renamed?"
        raise ValueError(f"{function} is defined {len(found)} times. {remedy}")
    return found[0]


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


def _place(definition: ast.AST, patch: Patch) -> list[ast.AST]:
    """The node that is replaced, or the statements in a row."""
    old, new = _argument(patch.old), _argument(patch.new)
    expressions = isinstance(old, ast.expr) and isinstance(new, ast.expr)
    named = isinstance(old, ast.keyword) and isinstance(new, ast.keyword)
    found = []
    if expressions or named:
        found += [[node] for node in ast.walk(definition) if ast.dump(node) == ast.dump(old)]
    if not expressions:  # what looks like a named argument may be an assignment
        found += _in_a_row(definition, ast.parse(dedent(patch.old)).body)
    if len(found) != 1:
        lines = ", ".join(str(nodes[0].lineno) for nodes in found)
        remedy = f"Take a larger node than that in lines {lines}." if found else "Was it changed?"
        raise ValueError(f"{patch.function} has this code {len(found)} times: {patch.old!r}. {remedy}")
    return found[0]


def _argument(source: str) -> ast.AST | None:
    """Source as one argument of a call: an expression, or an argument by name. None if it is neither."""
    with suppress(SyntaxError):
        match ast.parse(f"_(\n{source}\n)", mode="eval").body:
            case ast.Call(args=[node], keywords=[]) | ast.Call(args=[], keywords=[node]):
                return node
    return None


def _in_a_row(definition: ast.AST, wanted: list[ast.stmt]) -> Iterator[list[ast.AST]]:
    """Where a block has these statements one after the other."""
    n, dumped = len(wanted), [ast.dump(statement) for statement in wanted]
    for node in ast.walk(definition):
        for _, block in ast.iter_fields(node):
            if n and isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                parts = (block[i : i + n] for i in range(len(block) - n + 1))
                yield from (part for part in parts if [ast.dump(statement) for statement in part] == dumped)


def _replaced(text: str, nodes: list[ast.AST], patch: Patch) -> str:
    """The source with the patch. All else stays as it is."""
    lines = text.encode().splitlines(keepends=True)  # columns of nodes are bytes
    begin = _offset(lines, _last_line_before_code(text) + 1, 0)
    start = _offset(lines, nodes[0].lineno, nodes[0].col_offset)
    stop = _offset(lines, nodes[-1].end_lineno, nodes[-1].end_col_offset)
    match nodes[0]:
        case ast.expr():
            new = f"({patch.new})"
        case ast.stmt():
            new = indent(dedent(patch.new), " " * nodes[0].col_offset).lstrip()
        case _:
            new = patch.new
    whole = b"".join(lines)
    top = "".join(f"{statement}\n" for statement in patch.top)
    return b"".join([whole[:begin], top.encode(), whole[begin:start], new.encode(), whole[stop:]]).decode()


def _offset(lines: list[bytes], line: int, column: int) -> int:
    return sum(map(len, lines[: line - 1])) + column


def _last_line_before_code(text: str) -> int:
    """Of the docstring and what is imported from ``__future__``."""
    last = 0
    for node in ast.parse(text).body:
        match node:
            case ast.Expr(value=ast.Constant()) | ast.ImportFrom(module="__future__"):
                last = node.end_lineno
            case _:
                break
    return last
