"""The public surface, found by looking: names, members, commands with their options, routes, and forms of reference rows."""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import narwhals.stable.v2 as nw
import typer
from fastapi import FastAPI

import dpoutlier
from dpoutlier.cli.app import app as program
from dpoutlier.engines.registry import ENGINES
from dpoutlier.tables.batched import BatchedTable
from dpoutlier.tables.paths import FORMATS

from .walking import members

ROOT = Path(__file__).parents[3]
EAGER = ("pandas", "polars", "pyarrow", "modin", "cudf")
"""Frames in memory that narwhals knows."""
IN_MEMORY = ("ndarray", "MaskedArray", "list", "tuple")


def names() -> Iterator[str]:
    """``dpoutlier.DPForest``, and all other public names."""
    yield from (f"dpoutlier.{name}" for name in dpoutlier.__all__)


def public_members() -> Iterator[str]:
    """``DPForest.fit``, and all other members of public classes, their own and inherited ones."""
    for name in dpoutlier.__all__:
        found = getattr(dpoutlier, name)
        if inspect.isclass(found):
            yield from (f"{name}.{member}" for member in members(found))


@cache
def documented() -> list[str]:
    """``dpoutlier.exceptions.PointsError``, and whatever else the documents name of our modules."""
    text = "\n".join(path.read_text("utf-8") for path in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])
    found = set(re.findall(r"\bdpoutlier(?:\.[A-Za-z_]+){2,}", text))
    for module, imported in re.findall(r"from (dpoutlier\.[a-z_.]+) import \(?([A-Za-z_, \n]+)", text):
        found |= {f"{module}.{name.strip()}" for name in imported.split(",") if name.strip()}
    return [name for name in sorted(found) if not inspect.ismodule(_named(name) or inspect)]


def _named(name: str) -> Any:
    """What a name with dots means, if anything."""
    module, _, attribute = name.rpartition(".")
    try:
        return getattr(importlib.import_module(module), attribute, None)
    except ImportError:
        return None


def commands(app: typer.Typer = program) -> Iterator[str]:
    """``cli ledger show``, and ``cli ledger show --json``: all commands, and their options."""
    yield from _commands(typer.main.get_command(app), "cli")


def _commands(command: Any, way: str) -> Iterator[str]:
    if hasattr(command, "commands"):
        for name, own in command.commands.items():
            yield from _commands(own, f"{way} {name}")
    else:
        yield way
    for option in (one for one in command.params if one.param_type_name == "option"):
        yield from (f"{way} {max(names, key=len)}" for names in (option.opts, option.secondary_opts) if names)


def routes(app: FastAPI) -> Iterator[str]:
    """``GET /v1/models``, and all other routes of a server, those of routers within it as well."""
    yield from _routes(app.router.routes, "")


def _routes(found: list[Any], way: str) -> Iterator[str]:
    for route in found:
        path = way + getattr(route, "path", "")
        if hasattr(route, "original_router"):  # FastAPI's for a router that was included
            yield from _routes(route.original_router.routes, path + route.include_context.prefix)
        elif getattr(route, "methods", None):
            yield from (f"{method} {path}" for method in sorted(route.methods))
        elif getattr(route, "routes", None):
            yield from _routes(route.routes, path)
        else:
            yield f"ANY {path}"


def sources() -> Iterator[str]:
    """``rows in POLARS``, and all other forms in which a fit takes reference rows."""
    yield from (f"rows in {engine.name.upper()}" for engine in ENGINES)
    yield from (f"rows in {suffix} files" for suffix in FORMATS)
    yield from (f"rows in a frame of {name}" for name in EAGER if find_spec(name) is not None and _known(name))
    yield from (f"rows in {name}" for name in IN_MEMORY)
    for package in ("engines", "tables", "trusted"):
        for module in pkgutil.iter_modules([str(Path(dpoutlier.__file__).parent / package)]):
            importlib.import_module(f"dpoutlier.{package}.{module.name}")
    left = [BatchedTable]
    while left:
        kind = left.pop()
        left += kind.__subclasses__()
        ours = kind.__module__.startswith("dpoutlier.") and not kind.__name__.startswith("_")
        if ours and not inspect.isabstract(kind):
            yield f"rows in {kind.__name__}"


def _known(name: str) -> bool:
    return name in {one.value for one in nw.Implementation}


def surface(envelope: Any) -> list[str]:
    """Every entry point."""
    found = [*names(), *public_members(), *documented(), *commands(), *routes(envelope), *sources()]
    return list(dict.fromkeys(found))
