"""Every numeric type of every way in, with values that are not exact in float64, and tables of them."""

import math
import random
from dataclasses import dataclass
from decimal import Decimal

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq

FLOATS = [0.0, -0.0, 0.1, -2.5, 5e-324, 1e300, math.inf, -math.inf, math.nan]


@dataclass(frozen=True)
class Stored:
    """A type of one way in."""

    way: str
    name: str
    kind: object

    def __str__(self):
        return f"{self.way}-{self.name}"

    @property
    def base(self):
        return self.name.removeprefix("pyarrow ")

    @property
    def decimal(self):
        """(precision, scale) of a decimal; of whole numbers of 128 bits too, which are as exact."""
        if self.base in {"HUGEINT", "UHUGEINT", "Int128", "UInt128"}:
            return 38, 0
        text = self.base.lower()
        if "decimal" not in text or "(" not in text:
            return None
        precision, scale = text[text.index("(") + 1 : -1].split(",")
        return int(precision), int(scale)

    @property
    def signed(self):
        return not self.base.lower().startswith("u")

    @property
    def bits(self):
        """Bits of a whole number."""
        named = {"TINYINT": 8, "SMALLINT": 16, "INTEGER": 32, "BIGINT": 64}
        return named.get(self.base.removeprefix("U")) or int("".join(filter(str.isdigit, self.base)))

    @property
    def float(self):
        """The float of numpy with the same values."""
        wide = {"float": "float32", "double": "float64", "real": "float32", "halffloat": "float16"}
        text = wide.get(self.base.lower(), self.base.lower())
        return np.dtype(text) if text in {"float16", "float32", "float64"} else None

    def values(self, n=60):
        """Numbers of this type: at both ends, at ties, and at random; None at the end."""
        rnd = random.Random(str(self))
        if self.base.lower() in {"bool", "boolean"}:
            return [True, False, None]
        if self.float is not None:
            with np.errstate(over="ignore"):
                some = np.array([*FLOATS, *(rnd.gauss(0, 3) for _ in range(n))]).astype(self.float)
            return [*map(float, some), None]
        if self.base in {"longdouble", "object"}:
            return [Decimal("8.999999999999999"), Decimal("0.1"), 2**53 + 1, 2**64 + 3, -(10**30) - 1, 0.1, None]
        if self.decimal is not None:
            precision, scale = self.decimal
            most = 10**precision - 1
            near = [9 * 10**scale - 1, 9 * 10**scale - 2, 2**53 + 1, 2**53 + 3, 2**54 + 6, most]
            whole = [*near, *(rnd.randrange(10 ** rnd.randrange(1, precision + 1)) for _ in range(n))]
            whole = [own for own in whole if own <= most]
            whole = [sign * own for own in whole for sign in ((1, -1) if self.signed else (1,))]
            exact = [Decimal(f"{own}E-{scale}") for own in whole] if scale else whole
            return [*exact, None]
        low, high = (-(2 ** (self.bits - 1)), 2 ** (self.bits - 1) - 1) if self.signed else (0, 2**self.bits - 1)
        near = [low, high, high - 1, 0, 1, 2**53 + 1, 2**53 + 3, 2**54 + 6, -(2**53) - 1]
        return [*(own for own in near if low <= own <= high), *(rnd.randint(low, high) for _ in range(n)), None]

    @property
    def inexact(self):
        """Whether some of its numbers are not exact in float64."""
        return any(own is not None and own == own and float(own) != own for own in self.values())


def decimals(make, limit=38):
    sizes = [(4, 2), (9, 3), (15, 4), (18, 4), (18, 18), (38, 15), (38, 0), (38, 38)]
    return {f"decimal({p}, {s})": make(p, s) for p, s in sizes if p <= limit}


def arrow_types():
    whole = [getattr(pa, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    named = {str(kind): kind for kind in (*whole, pa.float16(), pa.float32(), pa.float64(), pa.bool_())}
    more = {"decimal32(7, 2)": pa.decimal32(7, 2), "decimal64(15, 4)": pa.decimal64(15, 4)}
    return {**named, **decimals(pa.decimal128), **more, "decimal256(60, 20)": pa.decimal256(60, 20)}


def polars_types():
    plain = [pl.Boolean, *sorted(pl.datatypes.group.NUMERIC_DTYPES - {pl.Decimal}, key=str)]
    return {**{str(kind): kind for kind in plain}, **decimals(pl.Decimal)}


def numpy_types():
    codes = sorted(set(np.typecodes["AllInteger"] + np.typecodes["Float"] + "?") - {*"pPg"})
    return {np.dtype(code).name: np.dtype(code) for code in codes} | {"longdouble": np.dtype(np.longdouble)}


def duckdb_types():
    whole = ["TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT"]
    plain = ["BOOLEAN", *whole, *(f"U{name}" for name in whole), "REAL", "DOUBLE"]
    return {name: name for name in plain} | decimals(lambda p, s: f"DECIMAL({p},{s})")


def pandas_types():
    nullable = [f"{sign}Int{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64)]
    named = {name: name for name in (*nullable, "Float32", "Float64", "boolean")}
    return named | {f"pyarrow {name}": pd.ArrowDtype(kind) for name, kind in arrow_types().items()} | {"object": object}


def spark_types():
    whole = [getattr(pa, f"int{bits}")() for bits in (8, 16, 32, 64)]
    return {str(kind): kind for kind in (*whole, pa.float32(), pa.float64(), pa.bool_())} | decimals(pa.decimal128)


def parquet_types():
    return {name: kind for name, kind in arrow_types().items() if name != "halffloat"} | {"halffloat": pa.float16()}


TYPES = {
    "list": {"object": object},
    "numpy": numpy_types(),
    "pandas": pandas_types(),
    "polars": polars_types(),
    "arrow": arrow_types(),
    "parquet": parquet_types(),
    "dataset": parquet_types(),
    "csv": {"object": object},
    "polars lazy": polars_types(),
    "duckdb": duckdb_types(),
    "dask": {name: kind for name, kind in pandas_types().items() if name != "object"},
    "spark": spark_types(),
}
LAZY = ["polars lazy", "duckdb", "dask", "spark"]
NOT_IN_DASK = ("decimal32", "decimal64", "decimal256", "decimal(18, 18)", "decimal(38, 38)")
"""Types that narwhals does not know, or of which Dask cannot make up a row."""
_ALL = [Stored(way, name, kind) for way, types in TYPES.items() for name, kind in types.items()]
REFUSED = [one for one in _ALL if one.way == "dask" and one.base.startswith(NOT_IN_DASK)]
STORED = [one for one in _ALL if one not in REFUSED]


def table_of(stored, values, ids=None, folder=None, request=None):
    """A table with the column x, and id if ids are given, that ``fit`` takes."""
    return _MAKERS[stored.way](stored.kind, list(values), ids, folder, request)


def _frame(column, ids, make):
    return make({"x": column} if ids is None else {"x": column, "id": ids})


def _list(_, values, ids, folder, request):
    assert ids is None
    return [[value] for value in values]


def _numpy(kind, values, ids, folder, request):
    assert ids is None
    known = [value for value in values if value is not None]
    return np.array(known, object).astype(kind).reshape(-1, 1)


def _pandas(kind, values, ids, folder, request):
    arrow = getattr(kind, "pyarrow_dtype", None)
    column = pd.Series(values if arrow is None else pd.array(pa.array(values, arrow), dtype=kind), dtype=kind)
    return _frame(column, ids, pd.DataFrame)


def _polars(kind, values, ids, folder, request):
    if kind == pl.Decimal:
        values = [None if own is None else Decimal(own) for own in values]
    return _frame(pl.Series(values, dtype=kind, strict=False), ids, pl.DataFrame)


def _arrow(kind, values, ids, folder, request):
    given = [None if v is None else np.float16(v) for v in values] if pa.types.is_float16(kind) else values
    return _frame(pa.array(given, kind), ids, pa.table)


def _parquet(kind, values, ids, folder, request):
    path = folder / "rows.parquet"
    pq.write_table(_arrow(kind, values, ids, folder, request), path, row_group_size=50)
    return str(path)


def _dataset(kind, values, ids, folder, request):
    return ds.dataset(_parquet(kind, values, ids, folder, request))


def _csv(_, values, ids, folder, request):
    path = folder / "rows.csv"
    names = ["x"] if ids is None else ["x", "id"]
    rows = zip(values) if ids is None else zip(values, ids)
    text = [",".join("" if own is None else str(own) for own in row) for row in rows]
    path.write_text("\n".join([",".join(names), *text]) + "\n", "utf-8")
    return str(path)


def _polars_lazy(kind, values, ids, folder, request):
    return _polars(kind, values, ids, folder, request).lazy()


def _duckdb(kind, values, ids, folder, request):
    """From text, which DuckDB takes to every type."""
    texts = [None if own is None else f"{own:f}" if isinstance(own, Decimal) else str(own) for own in values]
    relation = duckdb.connect().from_arrow(_frame(pa.array(texts, pa.string()), ids, pa.table))
    return relation.project(f"CAST(x AS {kind}) AS x" + ("" if ids is None else ", id"))


def _dask(kind, values, ids, folder, request):
    return dd.from_pandas(_pandas(kind, values, ids, folder, request), npartitions=3)


def _spark(kind, values, ids, folder, request):
    return request.getfixturevalue("spark").createDataFrame(_arrow(kind, values, ids, folder, request))


_MAKERS = {
    "list": _list,
    "numpy": _numpy,
    "pandas": _pandas,
    "polars": _polars,
    "arrow": _arrow,
    "parquet": _parquet,
    "dataset": _dataset,
    "csv": _csv,
    "polars lazy": _polars_lazy,
    "duckdb": _duckdb,
    "dask": _dask,
    "spark": _spark,
}
