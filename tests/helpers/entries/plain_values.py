"""What an entry point returns, as plain values with the way to each: to be compared, or to be searched for planted values."""

import dataclasses
import functools
import inspect
import io
import struct
import types
import zipfile
from collections.abc import Iterator, Mapping
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from .frozen_world import Seen

OPAQUE = ("_thread", "threading", "urllib3", "concurrent", "asyncio", "contextlib")
"""Modules whose objects are shown by their type alone: locks, connections."""
DEEP = 40


def plain(value: Any, known: frozenset[int] = frozenset()) -> Any:
    """The value as numbers, texts, bytes, lists and dicts."""
    if value is None or isinstance(value, bool | str | bytes) or type(value) in {int, float}:
        return value
    if id(value) in known or len(known) > DEEP:
        return f"<{type(value).__name__} again>"
    inner = functools.partial(plain, known=known | {id(value)})
    if isinstance(value, Enum):
        return [type(value).__name__, inner(value.value)]
    if isinstance(value, np.ndarray):
        content = [inner(one) for one in value.ravel().tolist()] if value.dtype.hasobject else value.tobytes()
        return ["array", str(value.dtype), list(value.shape), content]
    if isinstance(value, np.generic | Fraction | complex | int | float):
        return [type(value).__name__, repr(value)]
    table = _table(value)
    if table is not None:
        return [type(value).__name__, str(table.schema.remove_metadata()), inner(table.to_pydict())]
    if isinstance(value, PurePath):
        return ["path", str(value)]
    if isinstance(value, Mapping):
        return {f"{key!r}": inner(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(inner, value)]
    if isinstance(value, set | frozenset):
        return [type(value).__name__, *sorted(map(repr, value))]
    if isinstance(value, Iterator) and not isinstance(value, io.IOBase):
        return [type(value).__name__, *map(inner, value)]
    if isinstance(value, BaseException):
        return [type(value).__name__, str(value), inner(value.args)]
    if isinstance(value, functools.partial):
        return ["partial", inner(value.func), inner(value.args), inner(value.keywords)]
    if isinstance(value, types.MethodType):
        return ["method", value.__qualname__, inner(value.__self__)]
    if inspect.isroutine(value) or inspect.isclass(value) or isinstance(value, types.ModuleType):
        closed = [cell.cell_contents for cell in getattr(value, "__closure__", None) or ()]
        return [getattr(value, "__qualname__", type(value).__name__), *map(inner, closed)]
    if type(value).__module__.split(".")[0] in OPAQUE:
        return f"<{type(value).__name__}>"
    if type(value).__module__.startswith("rich."):
        return _printed(value)
    return [type(value).__qualname__, _text(value), {name: inner(own) for name, own in state(value).items()}]


def state(value: Any) -> dict[str, Any]:
    """What an object keeps, by whatever means."""
    found = dict(getattr(value, "__dict__", {}))
    for base in type(value).__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in [slots] if isinstance(slots, str) else slots:
            if hasattr(value, name):
                found[name] = getattr(value, name)
    if dataclasses.is_dataclass(value):
        found |= {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    return found


def _text(value: Any) -> str:
    """Its ``repr`` and ``str``, if they are its own; addresses say nothing."""
    return "\n".join(text for text in (repr(value), str(value)) if " at 0x" not in text)


def _printed(value: Any) -> str:
    from rich.console import Console

    out = io.StringIO()
    Console(file=out, width=300, highlight=False).print(value)
    return out.getvalue()


def _table(value: Any) -> pa.Table | None:
    """Frames of all kinds as tables, those that were not computed yet as well."""
    module = type(value).__module__.split(".")[0]
    if isinstance(value, pa.Table):
        return value
    if isinstance(value, pa.RecordBatchReader):
        return value.read_all()
    if isinstance(value, pl.LazyFrame):
        return value.collect().to_arrow()
    if isinstance(value, pl.DataFrame):
        return value.to_arrow()
    if isinstance(value, pl.Series | pd.Series):
        return _table(value.to_frame())
    if isinstance(value, pd.DataFrame):
        return pa.Table.from_pandas(value)
    if module == "dask":
        return pa.Table.from_pandas(value.compute())
    if module in {"duckdb", "_duckdb"}:
        return value.to_arrow_table()
    if module == "pyspark":
        return value.toArrow()
    return None


# Comparing and searching ---------------------------------------------------------------------------------------------------


def leaves(value: Any, way: str = "") -> Iterator[tuple[str, Any]]:
    """The plain values of ``plain`` that are neither lists nor dicts, with the way to each."""
    if isinstance(value, dict):
        for name, own in value.items():
            yield from leaves(own, f"{way}.{name}")
        yield f"{way} keys", repr(list(value))
    elif isinstance(value, list):
        for number, own in enumerate(value):
            yield from leaves(own, f"{way}[{number}]")
        yield f"{way} length", len(value)
    else:
        yield way, value


def difference(one: Any, other: Any) -> list[str]:
    """Where two plain values differ, in words; nothing if they are equal."""
    first, second = dict(leaves(one)), dict(leaves(other))
    ways = [*first, *(way for way in second if way not in first)]
    return [
        f"{way}: {_short(first.get(way, '(nothing)'))} became {_short(second.get(way, '(nothing)'))}"
        for way in ways
        if repr(first.get(way, ...)) != repr(second.get(way, ...))
    ][:20]


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 300 else f"{text[:200]}...{text[-80:]}"


def bytes_of(seen: Seen) -> Iterator[tuple[str, bytes]]:
    """All that was seen, piece by piece and as bytes: numbers also as they lie in memory, packed files also unpacked."""
    for way, leaf in leaves(plain(seen._replace(files={}))):
        yield way, leaf if isinstance(leaf, bytes) else str(leaf).encode("utf-8", "backslashreplace")
        if isinstance(leaf, float):
            yield way, struct.pack("<d", leaf)
    for name, (_, content) in seen.files.items():
        yield f"the name of {name}", name.encode()
        yield name, content
        yield from _unpacked(name, content)


def _unpacked(name: str, content: bytes) -> Iterator[tuple[str, bytes]]:
    if content.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for member in archive.namelist():
                yield f"{name}/{member}", archive.read(member)
    if content.startswith(b"PAR1"):
        table = pq.read_table(io.BytesIO(content))
        for way, leaf in leaves(plain(table.to_pydict())):
            yield f"{name}{way}", leaf if isinstance(leaf, bytes) else repr(leaf).encode()
        yield f"{name} metadata", str(pq.read_metadata(io.BytesIO(content)).to_dict()).encode()
