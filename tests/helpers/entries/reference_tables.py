"""Reference rows for tests of entry points: neighbouring tables, planted values, and every form in which a fit takes them."""

import random
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq

from dpoutlier import Category
from lazy_frames import lazy

NAMES = ("who", "a", "b", "c")
LEVELS = ["low", "high"]
MOST = 2
"""Rows of a person that are counted."""
FEATURES = {
    "features": {"a": (0, 10)},
    "categories": {"b": LEVELS, "c": Category([1, 2, 3], ordered=True)},
    "missing": ["a", "b"],
}
PEOPLE = {**FEATURES, "person": "who", "rows_per_person": MOST}
TOML = """[features]
a = {lower = 0, upper = 10, missing = "cell"}
b = {levels = ["low", "high"], missing = "cell"}
c = {levels = [1, 2, 3], ordered = true}
"""
POINTS = {"a": [0.5, 9.5, 4.25], "b": ["low", "high", "unheard of"], "c": [1.0, 3.0, 2.0]}


class Row(NamedTuple):
    """One row, of types that every engine knows. None is a missing value."""

    who: str | None
    a: float | None
    b: str | None
    c: float | None


A = [float("nan"), float("inf"), float("-inf"), 1e308, -1e308, -0.0, 5e-324, 0.5, 3.25, 9.875, 11.0, None]
B = ["low", "high", "never heard of", "", None]
C = [1.0, 2.0, 3.0, 9.0, float("nan"), float("inf"), None]
WHO = ["p", "q", "r", "s", None, ""]


class Pair(NamedTuple):
    """Two neighbouring tables."""

    name: str
    one: list[Row]
    other: list[Row]
    neighbours: str
    """The relation in which they are neighbours."""


def made_row(chance: random.Random, who: Any = ...) -> Row:
    return Row(chance.choice(WHO) if who is ... else who, chance.choice(A), chance.choice(B), chance.choice(C))


def mixed(chance: random.Random, rows: list[Row]) -> list[Row]:
    return chance.sample(rows, len(rows))


def made_pair(kind: str, chance: random.Random) -> Pair:
    """A pair of one of the KINDS: somebody with up to two rows more than are counted comes, or is another."""
    rows = [made_row(chance) for _ in range(chance.randrange(8))]
    own = [made_row(chance, "someone new") for _ in range(chance.randrange(1, MOST + 3))]
    match kind:
        case "somebody among no rows":
            return Pair(kind, [], own, "add-or-remove-one")
        case "somebody more":
            return Pair(kind, rows, mixed(chance, rows + own), "add-or-remove-one")
        case "somebody less":
            return Pair(kind, mixed(chance, rows + own), rows, "add-or-remove-one")
        case "rows without an id":
            nobody = [made_row(chance, None) for _ in range(chance.randrange(1, 4))]
            return Pair(kind, rows, mixed(chance, rows + nobody), "add-or-remove-one")
        case "somebody else":
            other = [made_row(chance, "someone else") for _ in range(chance.randrange(1, MOST + 3))]
            return Pair(kind, rows + own, mixed(chance, rows + other), "replace-one")
    raise AssertionError(kind)


KINDS = ["somebody more", "somebody among no rows", "somebody less", "rows without an id", "somebody else"]


def of_rows(pair: Pair) -> Pair:
    """The same where nothing tells people apart: neighbours differ in one row, which is more, less or another."""
    chance = random.Random(repr(pair.one + pair.other))
    least = list(min(pair.one, pair.other, key=len))
    if pair.neighbours == "replace-one":
        return pair._replace(one=[*least, made_row(chance)], other=[*least, made_row(chance)])
    more = mixed(chance, [*least, made_row(chance)])
    return (
        pair._replace(one=least, other=more)
        if len(pair.one) <= len(pair.other)
        else pair._replace(one=more, other=least)
    )


# Planted values -----------------------------------------------------------------------------------------------------------

N_PLANTED, N_PEOPLE = 1013, 611
PLANTED = {"a": 7.316528417, "b": "zyxwv-planted-level", "c": 2.718450137, "who": "qwkj-planted-person"}


def planted_rows() -> list[Row]:
    """A number of rows and of people that nothing else here has, spread over many cells, with planted values among them."""
    chance = random.Random(5)
    rows = []
    for i in range(N_PLANTED):
        whole = i % 3 == 0
        a = PLANTED["a"] if i % 5 == 0 else PLANTED["a"] * 1e5 if i % 5 == 1 else chance.uniform(-1, 11)
        b = PLANTED["b"] if whole else chance.choice(B)
        c = PLANTED["c"] if i % 4 == 0 else chance.choice(C)
        rows.append(Row(f"{PLANTED['who']}-{i % N_PEOPLE}", a, b, c))
    return rows


# Tables of every form -----------------------------------------------------------------------------------------------------


def arrow(rows: list[Row]) -> pa.Table:
    columns = [[row[j] for row in rows] for j in range(len(NAMES))]
    kinds = [pa.string(), pa.float64(), pa.string(), pa.float64()]
    return pa.table([pa.array(own, kind) for own, kind in zip(columns, kinds, strict=True)], list(NAMES))


def objects(rows: list[Row]) -> pd.DataFrame:
    """A frame of Python objects. Some of them are not numbers where they should be."""
    odd = {1e308: "text", -1e308: b"\xff", 5e-324: 2**70}
    columns = {name: pd.Series([row[j] for row in rows], dtype=object) for j, name in enumerate(NAMES)}
    columns["a"] = pd.Series([odd.get(value, value) for value in columns["a"]], dtype=object)
    return pd.DataFrame(columns)


def written(rows: list[Row], folder, *, suffix: str, parts: int = 1):
    """Files of the rows in a folder that no observation looks into."""
    table, place = arrow(rows), folder / "given" / f"rows-{suffix}-{parts}"
    place.mkdir(parents=True, exist_ok=True)
    for old in place.iterdir():
        old.unlink()
    step = -(-len(rows) // parts) if rows else 1
    for part in range(parts):
        own = table.slice(part * step, step)
        if suffix == "parquet":
            pq.write_table(own, place / f"{part}.parquet")
        else:
            pyarrow.csv.write_csv(own, place / f"{part}.csv")
    return place


def numbers(rows: list[Row]) -> np.ndarray:
    """Two features without names."""
    return np.array([[np.nan if v is None else v for v in (row.a, row.c)] for row in rows], float).reshape(-1, 2)


def masked(rows: list[Row]) -> np.ma.MaskedArray:
    found = numbers(rows)
    return np.ma.MaskedArray(found, np.isnan(found))


FRAMES = {
    "pandas": lambda rows, _: arrow(rows).to_pandas(),
    "pandas objects": lambda rows, _: objects(rows),
    "polars": lambda rows, _: pl.from_arrow(arrow(rows)),
    "pyarrow": lambda rows, _: arrow(rows),
    "polars lazy": lambda rows, _: lazy("polars", arrow(rows)),
    "duckdb": lambda rows, _: lazy("duckdb", arrow(rows)),
    "dask": lambda rows, _: lazy("dask", arrow(rows)),
    "dataset": lambda rows, folder: pa.dataset.dataset(written(rows, folder, suffix="parquet", parts=2)),
    "csv file": lambda rows, folder: str(written(rows, folder, suffix="csv") / "0.csv"),
    "csv files": lambda rows, folder: sorted(written(rows, folder, suffix="csv", parts=2).glob("*.csv")),
    "parquet folder": lambda rows, folder: written(rows, folder, suffix="parquet", parts=2),
    "parquet pattern": lambda rows, folder: str(written(rows, folder, suffix="parquet", parts=2) / "*.parquet"),
}
"""How rows of people are passed to a fit."""
ARRAYS = {
    "ndarray": numbers,
    "ndarray by columns": lambda rows: np.asfortranarray(numbers(rows)),
    "ndarray of float32": lambda rows: np.nan_to_num(numbers(rows), nan=np.nan).clip(-1e38, 1e38).astype(np.float32),
    "ndarray of objects": lambda rows: numbers(rows).astype(object),
    "MaskedArray": masked,
    "list": lambda rows: numbers(rows).tolist(),
    "tuple": lambda rows: tuple(map(tuple, numbers(rows).tolist())),
}
"""How rows without names are passed to a fit."""
