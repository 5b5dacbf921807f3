"""Drafts of the features file: what is proposed, that it always loads or says why not, and that a schema tells no value."""

import datetime as dt
import re
import tomllib
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import run
from dpoutlier import Bounds, DPForest
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.tables import convert
from dpoutlier.tables.features_draft import MAX_TEXTS, draft, drafted

TODAY = dt.date(2020, 2, 29)


def entry(values, **options):
    """What is drafted for one column: an active entry as TOML reads it, or None."""
    (line,) = drafted(pa.table({"x": values}), **options)
    found = tomllib.loads(draft(pa.table({"x": values}), **options))["features"].get("x")
    assert (found is not None) == line.active
    return found


def why(values):
    (line,) = drafted(pa.table({"x": values}))
    assert not line.active
    return line.why


CELL = {"missing": "cell"}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([18, 90, 33] * 3 + list(range(20, 40)), [10, 100]),
        ([18.0, 90.5, None], {"lower": 10, "upper": 100, **CELL}),
        ([18.0, 90.5, float("nan")], {"lower": 10, "upper": 100, **CELL}),
        ([0.5, 0.75, float("inf"), -float("inf")], [0.45, 0.8]),
        ([-3.0, 3.5], [-4, 5]),
        ([-30.5, -3.5], [-35, 0]),
        ([Decimal("1.25"), Decimal("7.50")], [0, 9]),
        ([10**12, 2 * 10**12], [900_000_000_000, 2_100_000_000_000]),
        ([1e-9, 2.5e-9], [8e-10, 2.8e-9]),
        ([1, 2, 3, 1, 2, 3], {"levels": [1, 2, 3]}),
        ([1.0, 2.0, None, 1.0, 2.0], {"levels": [1, 2], **CELL}),
        ([-1, 10, 2] * 4, {"levels": [-1, 2, 10]}),
        ([True, True, None], {"levels": [False, True], "other": False, **CELL}),
        (["m", "f", "m", " f", ""], {"levels": ["f", "m"], **CELL}),
        (["m", "f"], {"levels": ["f", "m"]}),
        (["m", "f", "NA"] * 2, {"levels": ["NA", "f", "m"]}),
        (["True", "False", "True", "True"], {"levels": ["False", "True"], "other": False}),
        (['a"\\', "#'", "ü"] * 2, {"levels": ["#'", 'a"\\', "ü"]}),
        ([b"m", b"f"] * 2, {"levels": ["f", "m"]}),
        (pa.array(["m", "f"] * 2).dictionary_encode(), {"levels": ["f", "m"]}),
        (["1", " 2.0", "1.0", "2", ""], {"levels": [1, 2], **CELL}),
        (["18", "90.5", "1e1"], [0, 100]),
        (["18", "90.5", "NA", "?"], {"lower": 10, "upper": 100, **CELL}),
        ([*map(str, np.linspace(18, 90, 99)), "<5"], {"lower": 10, "upper": 100, **CELL}),
        ([*map(str, np.linspace(18, 90, 9)), "<5"], None),
    ],
)
def test_what_is_drafted_from_a_sample(values, expected):
    assert entry(values) == expected


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ([5, 5, 5], "5 in the whole sample"),
        (["a", "a"], "the same in the whole sample"),
        ([None, None], "no value"),
        (pa.array([], pa.int64()), "no value"),
        (["", " "], "no value"),
        ([float("inf")] * 3, "no number"),
        (pa.array([None], pa.float64()), "no value"),
        ([TODAY] * 3, "dates and times cannot be features"),
        (["2020-02-29", "2020-03-01T10:00"], "dates and times cannot be features"),
        (["29.2.2020", "1.3.2020"], "dates and times cannot be features"),
        (["10:30", "11:00:05"], "dates and times cannot be features"),
        ([[1], [2]], "columns of type list"),
        ([f"p{i}" for i in range(50)], "50 different texts in 50 values: an identifier or free text.*fit --person"),
        ([f"p{i}" for i in range(MAX_TEXTS + 1)] * 5, "an identifier or free text"),
        (["a\nb", "c"] * 5, "an identifier or free text"),
        (["a" * 201, "c"] * 5, "an identifier or free text"),
        (list(range(1, 200)), "every whole number from 1 to 199 once"),
        ([-1.7e308, 1.7e308], "too wide or too narrow"),
        ([0.0, 5e-324], "too wide or too narrow"),
    ],
)
def test_what_is_left_out_has_its_reason(values, reason):
    assert re.search(reason, why(values))


def test_missing_cells_for_all_or_for_none():
    assert entry([18.0, 90.5, None], missing="none") == [10, 100]
    assert entry([18.0, 90.5], missing="all") == {"lower": 10, "upper": 100, **CELL}
    assert entry(["f", "m"], missing="all") == {"levels": ["f", "m"], **CELL}
    with pytest.raises(InvalidParameterError, match="missing must be one of"):
        draft(pa.table({"x": [1]}), missing="cell")


@given(
    st.floats(allow_nan=False, allow_infinity=False, width=32),
    st.floats(allow_nan=False, allow_infinity=False, width=32),
)
def test_a_range_is_wider_than_the_sample_and_not_much(a, b):
    low, high = min(a, b), max(a, b)
    found = entry([low, high])
    if low == high:
        assert found is None
        return
    if found is None:
        assert high - low < 1e-290
        return
    lower, upper = found
    assert lower <= low < high <= upper
    whole = low == round(low) and high == round(high)
    assert upper - lower <= 1.81 * (high - low) + 4 * whole  # by at most a tenth and a step of a quarter, on both sides


NAMES = [
    "a.b", 'say "x"', "back\\slash", "ünï ☃", "", "a#b", "[x]", "a = 1", "'", "tab\there", "new\nline", "\u2028", "\x7f",
    "y" * 300,
]  # fmt: skip


def test_names_of_all_kinds_come_back(tmp_path):
    table = pa.table({name: [0.5, 1.5] for name in NAMES})
    path = tmp_path / "features.toml"
    path.write_text(draft(table), encoding="utf-8")
    usable = tuple(name for name in NAMES if name.isprintable() and len(name) <= 200)
    assert Bounds.from_file(path).names == usable
    assert path.read_text(encoding="utf-8").count("rename the column") == len(NAMES) - len(usable) > 3


def test_the_source_cannot_break_out_of_its_comment():
    text = draft(pa.table({"x": [0.5, 1.5]}), source='new\n[features]\nx = "')
    assert tomllib.loads(text) == {"features": {"x": [0.4, 1.6]}}


@pytest.mark.parametrize("table", [pa.table({}), pa.table([[1], [2]], ["x", "x"]), pa.schema([])])
def test_a_table_needs_columns_with_names_of_their_own(table):
    with pytest.raises(InvalidParameterError, match="columns whose names differ"):
        draft(table)


# Any table ----------------------------------------------------------------------------------------------------------------

COLUMNS = st.one_of(
    st.lists(st.one_of(st.none(), st.floats()), max_size=12).map(lambda values: pa.array(values, pa.float64())),
    st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=12).map(lambda values: pa.array(values, pa.float32())),
    st.lists(st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)), max_size=12).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.integers(0, 3), max_size=12).map(lambda values: pa.array(values, pa.int8())),
    st.lists(st.one_of(st.none(), st.booleans()), max_size=12).map(lambda values: pa.array(values, pa.bool_())),
    st.lists(st.one_of(st.none(), st.text(max_size=5)), max_size=12).map(lambda values: pa.array(values, pa.string())),
    st.lists(st.sampled_from(["a", '"', "\\", "#", "1", "x\ty", " "]), max_size=12).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.binary(max_size=4), max_size=12).map(lambda values: pa.array(values, pa.binary())),
    st.lists(st.sampled_from(["7", "8.5", "1e3", "NA", ""]), max_size=12).map(lambda v: pa.array(v, pa.large_string())),
    st.lists(st.just(TODAY), max_size=5).map(lambda values: pa.array(values, pa.date32())),
    st.lists(st.sampled_from("ab"), max_size=12).map(lambda values: pa.array(values, pa.string()).dictionary_encode()),
    st.lists(st.decimals(-99, 99, places=2), max_size=5).map(lambda values: pa.array(values, pa.decimal128(9, 2))),
    st.lists(st.none(), max_size=5).map(lambda values: pa.array(values, pa.null())),
)  # fmt: skip
names_in_arrow = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)


@settings(max_examples=300)
@given(st.dictionaries(names_in_arrow, COLUMNS, min_size=1, max_size=4), st.sampled_from(["seen", "all", "none"]))
def test_a_draft_of_any_table_is_toml_and_each_active_line_is_a_feature_that_fits(tmp_path_factory, columns, missing):
    for name, column in columns.items():
        table = pa.table({name: column})
        text = draft(table, missing=missing)
        found = tomllib.loads(text)["features"]
        path = tmp_path_factory.getbasetemp() / "features.toml"
        path.write_text(text, encoding="utf-8")
        if not found:
            with pytest.raises(InvalidParameterError, match="take away the #"):
                Bounds.from_file(path)
            continue
        assert list(found) == [name]
        domain = Bounds.from_file(path).domain(1, [name])
        (values,) = convert.columns(table, domain)
        known = np.isfinite(values)
        assert not domain.outside([values[known]]).any()
        if missing == "seen":
            assert domain.has_missing_cell(0) == np.isnan(values).any()


# From a schema ------------------------------------------------------------------------------------------------------------


def test_a_schema_gives_lines_to_fill_in():
    schema = pa.schema(
        [("age", pa.int64()), ("sex", pa.string()), ("ill", pa.bool_()), ("day", pa.date32()), ("a b", pa.null()),
         ("site", pa.dictionary(pa.int8(), pa.string())), ("all", pa.list_(pa.int8()))]
    )  # fmt: skip
    text = draft(schema)
    assert tomllib.loads(text) == {"features": {}}
    lines = text[text.index("[features]") :].splitlines()[1:]
    assert [line.split("  #")[0].rstrip() for line in lines] == [
        "# age = [lower, upper]",
        '# sex = {levels = ["...", "..."]}',
        "# ill = {levels = [false, true], other = false}",
        "# day = [lower, upper]",
        '# "a b" = [lower, upper]',
        '# site = {levels = ["...", "..."]}',
        "# all = [lower, upper]",
    ]
    assert '# age = {lower = lower, upper = upper, missing = "cell"}' in draft(schema, missing="all")


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_with_schema_no_value_is_shown(tmp_path, monkeypatch, suffix):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("dpoutlier.cli.files._public", pytest.fail)
    sentinel = pa.table({"age": [987654321, 5], "name": ["SENTINEL", "SECOND"], "x": [0.123456789, None]})
    if suffix == ".csv":
        (tmp_path / "r.csv").write_text("age,name,x\n987654321,SENTINEL,0.123456789\n5,SECOND,\n")
    else:
        pq.write_table(sentinel.replace_schema_metadata({"note": "SENTINEL"}), "r.parquet")
    printed = run("features", f"r{suffix}", "--schema", "-o", "f.toml")
    written = (tmp_path / "f.toml").read_text()
    for shown in (printed, written):
        assert "age" in shown
        assert not any(value in shown for value in ("987654321", "SENTINEL", "SECOND", "0.1234"))
    first = "Only the first line of r.csv was read, as the names of its columns"
    assert (first if suffix == ".csv" else "No row was read") in printed
    assert ("No row was read" in printed) == (suffix == ".parquet")
    assert "NEVER from the reference rows" in written


ROWS = [
    "54.123,27.9",
    "f,54",
    "0,2",
    "1,3",
    "Ada,1815-12-10",
    "Ada,12/10/1815",
    "Ada,,F",
    "Ada,true",
    "Ada,NaN",
    "Ada,9:54",
]


@pytest.mark.parametrize("row", ROWS)
def test_a_first_line_that_is_a_row_is_not_shown(tmp_path, monkeypatch, row):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(f"{row}\n")
    printed = run("features", "r.csv", "--schema", code=2)
    assert "must name the columns" in printed
    assert not any(value in printed for value in ("54", "27.9", "Ada", "1815"))
    assert not (tmp_path / "features.toml").exists()


def test_a_first_line_of_text_alone_is_said_to_be_read(tmp_path, monkeypatch):
    """It may be a row, and nothing tells: so no message says that no row was read."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text("Ada,Berlin,female\nBob,Rome,male\n")
    printed = run("features", "r.csv", "--schema")
    assert "No row was read" not in printed
    assert "If the names above are values of a row" in printed
    assert "delete features.toml" in printed


def test_names_that_tables_do_have_are_taken(tmp_path, monkeypatch):
    """Row numbers without a name, sodium, and a question."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(",Na,none,K,2.day\n")
    run("features", "r.csv", "--schema")


@pytest.mark.parametrize("names", [["0", "1", "2"], ["id", "1", "2"]])
def test_columns_may_be_counted(tmp_path, monkeypatch, names):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.csv").write_text(",".join(names) + "\n")
    run("features", "r.csv", "--schema")
    assert "# 1 = [lower, upper]" in (tmp_path / "features.toml").read_text()


# The command --------------------------------------------------------------------------------------------------------------


@pytest.fixture
def sample(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 200
    table = pa.table(
        {
            "person": [f"p{i}" for i in range(n)],
            "age": rng.integers(18, 90, n),
            "a.b": rng.normal(size=n),
            "sex": rng.choice(["f", "m"], n),
            "stage": rng.integers(1, 5, n),
            "smoker": rng.random(n) < 0.3,
            "bmi": pa.array(rng.normal(27, 4, n), mask=rng.random(n) < 0.2),
            "day": [TODAY] * n,
        }
    )
    pq.write_table(table, "new.parquet")
    pyarrow.csv.write_csv(table, "new.csv")
    return table


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_from_a_sample_to_scores(sample, tmp_path, suffix):
    printed = run("features", f"new{suffix}", "--public", "-o", "f.toml")
    assert f"Is new{suffix} public?" in printed
    assert "Wrote f.toml" in printed
    bounds = Bounds.from_file("f.toml")
    assert bounds.names == ("age", "a.b", "sex", "stage", "smoker", "bmi")
    table = sample.select(list(bounds.names))
    domain = bounds.domain(6, bounds.names)
    assert domain.missing == (False,) * 5 + (True,)
    scores = DPForest(epsilon=1, features="f.toml", n_trees=5, n_rows_hint=200).fit(table).score_samples(table)
    assert np.isfinite(scores).all()
    run("fit", f"new{suffix}", "--features", "f.toml", "--epsilon", "1", "--person", "person", "-o", "m")
    run("score", "m.dpo", f"new{suffix}", "-o", "s.csv")
    assert len((tmp_path / "s.csv").read_text().splitlines()) == 201
    assert "true" not in [line.split(",")[-1] for line in (tmp_path / "s.csv").read_text().splitlines()[1:]]


def test_drafts_from_csv_and_parquet_agree(sample):
    run("features", "new.csv", "--public", "-o", "c.toml")
    run("features", "new.parquet", "--public", "-o", "p.toml")
    c, p = Bounds.from_file("c.toml"), Bounds.from_file("p.toml")
    assert c.domain(6, c.names) == p.domain(6, p.names)


def test_rows_are_read_only_if_somebody_says_that_they_are_public(sample, tmp_path, monkeypatch):
    monkeypatch.setattr("dpoutlier.cli.files._header", pytest.fail)
    printed = run("features", "new.csv", code=2)
    assert "Give --public if all its rows are public" in printed
    assert "--schema" in printed
    assert not (tmp_path / "features.toml").exists()


def test_an_existing_file_is_kept_without_force(sample, tmp_path):
    (tmp_path / "features.toml").write_text("mine")
    assert "--force" in run("features", "new.csv", "--public", code=2)
    assert (tmp_path / "features.toml").read_text() == "mine"
    run("features", "new.csv", "--public", "--force", "--missing", "none")
    assert "missing" not in (tmp_path / "features.toml").read_text()


@pytest.mark.parametrize(
    ("content", "arguments", "message"),
    [
        (None, (), "s.csv does not exist"),
        ("", (), "needs a header line"),
        ("a,a\n1,2\n", (), "more than one column named 'a'"),
        ("a,b\n1\n", (), "s.csv, line 2: the record has 1 value, but"),
        ("a\n1\n", ("-o", "f.json"), "--output must be a .toml file"),
        ("a\n1\n", ("-o", "none/f.toml"), "there is no folder none"),
    ],
)
def test_errors_of_the_command(tmp_path, monkeypatch, content, arguments, message):
    monkeypatch.chdir(tmp_path)
    if content is not None:
        (tmp_path / "s.csv").write_text(content)
    assert message in run("features", "s.csv", "--public", *arguments, code=2)
    assert not list(tmp_path.glob("*.toml"))


def test_names_that_look_like_markup_are_shown_as_they_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.csv").write_text("[/red],x\n[bold],1\n[/b],2\n")
    printed = run("features", "s.csv", "--public")
    assert "[/red]" in printed
    assert '"[bold]"' in printed


def test_a_draft_with_nothing_filled_in_says_what_to_do(sample):
    run("features", "new.csv", "--schema")
    printed = run("plan", "--n-rows", "10", "--features", "features.toml", "--epsilon", "1", code=2)
    assert "take away the # before the features to be used" in printed


def test_ranges_of_whole_numbers_end_in_whole_numbers():
    for values in ([1, 2, 3], [0, 1], [7, 9, 11, 12]):
        lower, upper = entry(values)
        assert lower == int(lower) <= min(values)
        assert upper == int(upper) >= max(values)


def test_many_texts_that_occur_often_are_levels_and_marks_of_unknown_are_asked_about():
    texts = [f"country {i % 42}" for i in range(42 * 20)] + ["?"] * 20
    (line,) = drafted(pa.table({"country": texts}))
    assert line.active
    assert "if ? means 'unknown', remove it" in line.why
    (line,) = drafted(pa.table({"country": texts[: 42 * 10]}))
    assert not line.active
