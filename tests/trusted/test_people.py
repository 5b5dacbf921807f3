"""At most m rows of each person: by a public rule, on that person's rows alone, whatever the order and the kind of table."""

import collections
import hashlib
import uuid
from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow.dataset import dataset

from dpoutlier import Bounds, DPForest, DPGridKNN, DPMarginals, PrivateBounds, load
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain
from dpoutlier.tables.identity import identity
from dpoutlier.tables.parquet import ParquetTable
from dpoutlier.trusted import people
from dpoutlier.trusted.people import PRIME, Block, kept_rows, row_keys
from dpoutlier.trusted.reference import read_reference

UNIT = Domain((0.0, 0.0), (1.0, 1.0), ("a", "b"))
ids = st.integers(-1, 4)
position = st.one_of(st.integers(0, 2), st.integers(0, 2**32 - 1))
tables = st.lists(st.tuples(ids, st.tuples(position, position)), max_size=30)


def kept(rows, most):
    places = np.array([p for _, p in rows], np.uint32).reshape(-1, 2)
    block = Block(np.array([i for i, _ in rows], np.int64), places, places.astype(np.float64))
    return kept_rows(lambda: [block], most)


def content(rows, most):
    """The rows that stay, as a bag."""
    return collections.Counter(row for row, stays in zip(rows, kept(rows, most)) if stays)


def naive_content(rows, most):
    stay = collections.Counter()
    for person in {i for i, _ in rows if i >= 0}:
        own = [p for i, p in rows if i == person]
        own.sort(key=lambda p: (int(row_keys(np.array([p], np.uint32))[0]), p))
        stay.update((person, p) for p in own[:most])
    return stay


@settings(max_examples=300)
@given(tables, st.integers(1, 4))
def test_the_rows_that_stay_are_those_of_the_definition(rows, most):
    assert content(rows, most) == naive_content(rows, most)


@given(tables, st.integers(1, 4))
def test_no_person_keeps_more_than_the_cap(rows, most):
    stay = kept(rows, most)
    people_kept = collections.Counter(i for (i, _), stays in zip(rows, stay) if stays)
    counted = collections.Counter(i for i, _ in rows if i >= 0)
    assert people_kept == collections.Counter({i: min(n, most) for i, n in counted.items()})


@given(tables, st.integers(1, 4), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows, most, random):
    shuffled = list(rows)
    random.shuffle(shuffled)
    assert content(rows, most) == content(shuffled, most)


@given(tables, tables, st.integers(1, 4))
def test_rows_of_others_never_decide_which_rows_of_a_person_stay(rows, others, most):
    mine = [row for row in rows if row[0] == 0]
    with_others = [*[(i, p) for i, p in others if i != 0], *mine]
    found = {row: n for row, n in content(with_others, most).items() if row[0] == 0}
    assert found == dict(content(mine, most))


@given(tables, st.integers(1, 3), st.randoms(use_true_random=False))
def test_rows_of_one_key_that_differ_are_distinguished_by_their_positions(rows, most, random):
    """Whoever makes rows of equal keys on purpose, which is possible since the rule is public, gains nothing by their order."""
    shuffled = list(rows)
    random.shuffle(shuffled)
    before = people.row_keys
    people.row_keys = lambda positions: np.zeros(len(positions), np.int64)
    try:
        assert content(rows, most) == content(shuffled, most)
    finally:
        people.row_keys = before


def test_the_rule_is_frozen_and_can_be_said_in_sql():
    """Two sums of products below 2**63 modulo a prime of 31 bits: every engine has that."""
    positions = np.array([[0, 1, 2**32 - 1], [7, 2**31, 12345]], np.uint32)
    words = hashlib.shake_256(b"dpoutlier rows 1" + (3).to_bytes(4, "little")).digest(64)
    factors = [int.from_bytes(words[i : i + 8], "little") % PRIME for i in range(0, 64, 8)]
    sums = [
        [(sum(int(p) * a % PRIME for p, a in zip(row, part)) + part[3]) % PRIME for part in (factors[:4], factors[4:])]
        for row in positions
    ]
    assert row_keys(positions).tolist() == [first * 2**31 + second for first, second in sums]
    assert row_keys(positions).tolist() == [2369489103032522370, 1312686151200691351]


def test_the_rule_takes_rows_of_all_places_alike():
    """A quarter of a person's rows stays, from each quarter of the cube about as many: 4,000 fair draws, sixfold deviation."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**32, (16_000, 2), dtype=np.uint32)
    stay = kept_rows(lambda: [Block(np.repeat(np.arange(1000), 16), rows, rows.astype(np.float64))], 4)
    quarter = (rows[stay] >> 31) @ [2, 1]
    assert (np.abs(np.bincount(quarter, minlength=4) - 1000) < 6 * np.sqrt(1000)).all()


PEOPLE = ["x", "y", "x", "", "x", "y", None, "z"]
VALUES = np.random.default_rng(1).uniform(size=(8, 2))


def frame():
    return pd.DataFrame({"a": VALUES[:, 0], "who": PEOPLE, "b": VALUES[:, 1]})


def number_kept(table, **arguments):
    return sum(len(rows) for rows in read_reference(table, UNIT, "who", **arguments))


@pytest.mark.parametrize("make", [frame, lambda: pl.from_pandas(frame()), lambda: pa.table(frame())])
@pytest.mark.parametrize(("most", "stay"), [(1, 3), (2, 5), (3, 6), (9, 6)])
def test_people_are_distinguished_in_every_kind_of_table(make, most, stay):
    assert number_kept(make(), rows_per_person=most) == stay


def test_a_file_is_read_in_batches_and_the_same_rows_stay(tmp_path, monkeypatch):
    n = 1000
    rng = np.random.default_rng(2)
    table = pa.table({"a": rng.uniform(size=n), "b": rng.uniform(size=n), "who": rng.integers(0, 90, n)})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=64)
    whole = np.concatenate([rows[:] for rows in read_reference(table, UNIT, "who", 3)])
    monkeypatch.setattr("dpoutlier.tables.batched.BATCH", 100)
    file = read_reference(ParquetTable(tmp_path / "t.parquet", ["a", "b", "who"]), UNIT, "who", 3)
    blocks = [rows[:] for rows in file]
    assert len(blocks) > 10
    assert (np.concatenate(blocks) == whole).all()
    expected = sum(min(n, 3) for n in collections.Counter(table["who"].to_pylist()).values())
    assert file.number_of_rows() == len(whole) == expected


@pytest.mark.parametrize(
    "column",
    [
        [1, 2, 1, None, 1, 2, None, 3],
        [1.0, 2.0, 1.0, np.nan, 1.0, 2.0, np.nan, 3.0],
        [uuid.UUID(int=1), uuid.UUID(int=2), uuid.UUID(int=1), None, uuid.UUID(int=1), uuid.UUID(int=2), pd.NA, 3],
        [memoryview(b"1"), memoryview(b"2"), memoryview(b"1"), object(), memoryview(b"1"), memoryview(b"2"), (), 3],
        [Decimal(1), Decimal("2.5"), Decimal("1.0"), Decimal("nan"), 1, Decimal("2.50"), float("inf"), Decimal(9)],
        [2**60, 2**60 + 1, 2.0**60, "NA", 2**60, 2**60 + 1, "null", 7],
        [b"1", b"2", b"1", b"", b"1", b"2", None, b"3"],
        ["1", "2", " 1", " ", "1 ", "2", pd.NaT, "3"],
    ],
)
def test_ids_of_any_type_tell_people_apart_and_missing_ones_count_for_nobody(column):
    table = frame()
    table["who"] = pd.Series(column, dtype=object)
    assert number_kept(table, rows_per_person=1) == 3
    assert number_kept(table, rows_per_person=2) == 5


@pytest.mark.parametrize("cls", [DPForest, DPMarginals, DPGridKNN])
def test_the_cap_is_applied_before_everything_that_is_charged(cls, monkeypatch):
    """Counts, number of rows, threshold and noise all see the rows that stay, and are charged for a person."""
    seen = []
    monkeypatch.setattr(
        "dpoutlier.trusted.fit.release_vector", lambda exact, _law, _source: seen.append(exact) or exact
    )
    table = pd.DataFrame({"who": np.repeat([1, 2], 50), "a": np.linspace(0, 1, 100)})
    own = {DPForest: {"n_rows_hint": "estimate"}, DPMarginals: {}, DPGridKNN: {"n_rows_hint": "estimate"}}[cls]
    fitted = cls(1, features={"a": (0, 1)}, person="who", rows_per_person=3, target_fpr=0.1, tight_ranges=True, **own)
    fitted.fit(table)
    assert [int(exact.sum()) for exact in seen] == [6] * len(seen)
    assert len(seen) == 1 + bool(own)
    assert fitted.n_features_in_ == 1
    assert fitted.feature_names_in_.tolist() == ["a"]
    for charge in fitted.model_.charges:
        assert charge.sensitivity.l1 == 3 * (fitted.model_.partition.cells_per_row if charge.purpose == "counts" else 1)


def test_the_statement_says_per_person_and_how_rows_were_left_out():
    table = pd.DataFrame({"who": ["u", "v"], "a": [0.1, 0.2]})
    statement = DPMarginals(1, features={"a": (0, 1)}, person="who").fit(table).privacy_statement()
    assert statement.unit == "one person, with at most 1 row"
    text = " ".join(str(statement).split())
    assert "Adding one person to, or removing it from," in text
    assert "At most 1 row of each person were counted" not in text
    assert "At most 1 row of each person was counted" in text
    assert "column 'who'" in text
    assert "People with more rows" not in text


def test_points_may_have_the_column_of_people_and_need_not(tmp_path):
    table = frame()
    detector = DPMarginals(1, features={"a": (0, 1), "b": (0, 1)}, person="who").fit(table)
    scores = detector.outlier_scores(table)
    assert (detector.outlier_scores(table[["a", "b"]]) == scores).all()
    assert (detector.outside_bounds(table) == False).all()  # noqa: E712
    again = detector.save(tmp_path / "m")
    assert (load(again).outlier_scores(table) == scores).all()
    assert load(again).estimator().get_params()["person"] == "who"


@pytest.mark.parametrize(
    ("person", "X"),
    [("nobody", frame()), ("who", VALUES), (3, frame()), ("a\nb", frame())],
    ids=["no such column", "an array", "no name", "no text"],
)
def test_a_column_that_is_not_there_is_refused_before_any_row_is_read(person, X, monkeypatch):
    monkeypatch.setattr("dpoutlier.trusted.fit.open_reference", pytest.fail)
    with pytest.raises(InvalidParameterError, match=r"person must be the name of a column"):
        DPMarginals(1, features=(0, 1), person=person).fit(X)


# Two people must not become one, nor one two ------------------------------------------------------------------------------


def test_objects_in_polars_are_distinguished_by_value_and_not_by_place():
    """Polars makes a column of objects from UUIDs by itself, and Arrow would be given their addresses."""
    one = str(uuid.UUID(int=7))
    table = pl.DataFrame({"a": VALUES[:, 0], "b": VALUES[:, 1], "who": [uuid.UUID(one) for _ in range(8)]})
    assert str(table["who"].dtype) == "Object"
    assert number_kept(table, rows_per_person=1) == 1


@pytest.mark.parametrize(
    ("width", "kind"), [(4, pa.binary()), (16, pa.binary()), (4, pa.binary(4)), (16, pa.binary(16))], ids=str
)
def test_binary_ids_keep_every_byte(width, kind):
    ids = [i.to_bytes(width, "big") for i in range(256)]
    domain = Domain((0.0,), (1.0,), ("a",))
    table = pa.table({"a": np.linspace(0, 1, 256), "who": pa.array(ids, kind)})
    for make in (table, pl.from_arrow(table), table.to_pandas()):
        rows = read_reference(make, domain, "who", 1)
        assert rows.number_of_rows() >= 255  # the id of four blanks is none


def test_ids_in_an_unknown_encoding_stay_different_people(tmp_path):
    from dpoutlier.tables.files import file_table as read_file

    path = tmp_path / "latin.csv"
    rows = ["a,b,who", "0.1,0.1,René", "0.2,0.2,Renè", "0.3,0.3, Renê ", "0.4,0.4,René", "0.5,xé,NA", ""]
    path.write_bytes("\n".join(rows).encode("latin-1"))
    table = read_file(path, ("a", "b"), "who")
    assert number_kept(table, rows_per_person=1) == 3


def test_people_with_private_bounds_are_capped_in_every_read(monkeypatch):
    """Bounds, counts and threshold: none of them sees more than two rows of anybody."""
    from dpoutlier.trusted import fit
    from dpoutlier.trusted import queries as readings

    seen = {}
    real_edges, real_counts, real_vector = fit.choose_quantiles, readings.count_rows, fit.release_vector
    monkeypatch.setattr(
        fit,
        "choose_quantiles",
        lambda counts, *rest: seen.update(bounds=int(counts.above(0)[0])) or real_edges(counts, *rest),
    )
    monkeypatch.setattr(
        readings,
        "count_rows",
        lambda rows, *rest: seen.update(counts=rows.number_of_rows()) or real_counts(rows, *rest),
    )
    monkeypatch.setattr(
        fit,
        "release_vector",
        lambda exact, *rest: seen.setdefault("small", []).append(int(exact.sum())) or real_vector(exact, *rest),
    )
    table = pd.DataFrame({"who": np.repeat(np.arange(30), 10), "a": np.random.default_rng(0).uniform(size=300)})
    DPForest(
        1,
        features=PrivateBounds(outer=(-10, 10)),
        person="who",
        rows_per_person=2,
        n_rows_hint="estimate",
        target_fpr=0.1,
    ).fit(table)
    assert seen == {"bounds": 60, "counts": 60, "small": [60, 60]}


@pytest.mark.parametrize("outer", [(-1e9, 1e9), (-1e300, 1e300), (0, 1)])
@given(st.lists(st.floats(0, 1), min_size=1, max_size=12), st.integers(1, 3), st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter_where_bounds_are_private(outer, values, most, random):
    """Within a wide outer range all rows may share a position: then their values decide, and never their order."""
    domain = Bounds.of({"a": PrivateBounds(outer=outer)}).domain(1, ["a"])
    shuffled = list(values)
    random.shuffle(shuffled)

    def stay(own):
        table = pd.DataFrame({"a": own, "who": "p"})
        (rows,) = read_reference(table, domain, "who", most)
        return sorted(rows.columns[0].tolist())

    assert stay(values) == stay(shuffled)


def test_rows_that_share_a_position_of_a_wide_range_are_still_taken_from_everywhere():
    """Not always the least: a quarter of 4,000 fair draws in each quarter of the range, sixfold deviation."""
    domain = Bounds.of({"a": PrivateBounds(outer=(-1e9, 1e9))}).domain(1, ["a"])
    values = np.random.default_rng(3).uniform(size=16_000)
    table = pd.DataFrame({"a": values, "who": np.arange(16_000) // 4})
    (rows,) = read_reference(table, domain, "who", 1)
    found = np.bincount((rows.columns[0] * 4).astype(int), minlength=4)
    assert (np.abs(found - 1000) < 6 * np.sqrt(1000)).all()


@pytest.mark.parametrize("kind", [pa.timestamp("s"), pa.list_(pa.int64()), pa.date32()], ids=str)
@pytest.mark.parametrize("column", ["a", "who"])
@pytest.mark.parametrize("n", [0, 1])
def test_types_that_are_no_features_are_refused_by_the_schema_alone(kind, column, n, tmp_path):
    own = pa.array([None] * n, kind)
    numbers = pa.array([0.5] * n, pa.float64())
    table = {"a": own if column == "a" else numbers, "b": numbers, "who": own if column == "who" else numbers}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    detector = DPMarginals(1, features={"a": (0, 1), "b": (0, 1)}, person="who")
    with pytest.raises(InvalidParameterError, match=f"column '{column}' of .*t.parquet has type"):
        detector.fit(tmp_path / "t.parquet")
    with pytest.raises(InvalidParameterError, match=f"column '{column}' of .*t.parquet has type"):
        detector.fit(dataset(tmp_path / "t.parquet"))


def test_categories_of_objects_are_distinguished_one_by_one():
    """Arrow would choose one type for all of them: with a date among them all times of a day would be one person."""
    times = [datetime(2020, 1, 2, hour) for hour in range(20)]
    for categories in (times, [date(2020, 1, 1), *times]):
        codes = np.arange(len(categories))
        who = pd.Categorical.from_codes(codes, categories=pd.Index(categories, dtype=object))
        table = pd.DataFrame({"a": 0.5, "b": 0.5, "who": who})
        assert number_kept(table, rows_per_person=1) == len(categories)


@pytest.mark.parametrize("kind", [pa.decimal128(38, 1), pa.decimal128(38, 32), pa.decimal256(76, 2)], ids=str)
def test_long_decimals_keep_all_digits(kind):
    digits = "1" * (kind.precision - kind.scale)
    ids = [Decimal(f"{digits}.{'0' * (kind.scale - 1)}{last}") for last in range(8)]
    table = pa.table({"a": VALUES[:, 0], "b": VALUES[:, 1], "who": pa.array(ids, kind)})
    assert number_kept(table, rows_per_person=1) == 8


def test_ids_are_equal_as_their_values_are():
    same = [1, 1.0, Decimal("1.00"), Fraction(2, 2), np.float32(1), np.int8(1), np.longdouble(1)]
    assert {identity(value) for value in same} == {"1"}
    big = [
        2**60,
        2**60 + 1,
        np.longdouble(2**63),
        np.longdouble(2**63) + 1,
        Fraction(3 * 2**60 + 1, 3),
        0.1,
        Decimal("0.1"),
    ]
    assert len({identity(value) for value in big}) == len(big)
    texts = [
        b"\xff",
        b"bytes ff",
        "\u00ff",
        b"\xc2",
        b"\xc2\xa0x",
        "x",
        "X",
        b"x ",
        True,
        1,
        date(2020, 1, 1),
        uuid.UUID(int=1),
    ]
    assert len({identity(value) for value in texts}) == len(texts)
    none = [
        None,
        "",
        " ",
        "na",
        "NULL",
        b"",
        b" ",
        np.nan,
        np.inf,
        Decimal("sNaN"),
        pd.NA,
        pd.NaT,
        object(),
        [],
        {},
        10**5000,
    ]
    assert {identity(value) for value in [*none, Decimal("1E+999999999"), np.datetime64("NaT")]} == {None}


def test_blanks_of_another_encoding_are_letters_in_a_file(tmp_path):
    from dpoutlier.tables.files import file_table as read_file

    path = tmp_path / "gbk.csv"
    path.write_bytes("a,b,who\n0.1,0.1,王聽\n0.2,0.2,王\n0.3,0.3, 王 \n".encode("gbk"))
    assert number_kept(read_file(path, ("a", "b"), "who"), rows_per_person=1) == 2
