"""The features file: every entry, every error."""

import json
import re
from pathlib import Path

import pytest

from dpoutlier import Bounds, Category, PrivateBounds
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.file import read_features

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "features.toml"

ENTRIES = [
    ("[0, 120]", (0.0, 120.0), False),
    ("[-1.5, 1e3]", (-1.5, 1000.0), False),
    ("{lower = 0, upper = 120}", (0.0, 120.0), False),
    ('{lower = 0, upper = 120, missing = "cell"}', (0.0, 120.0), True),
    ('{lower = 0, upper = 120, missing = "error"}', (0.0, 120.0), False),
    ('{levels = ["f", "m"]}', Category(["f", "m"]), False),
    ("{levels = [1, 2.5]}", Category([1, 2.5]), False),
    ("{levels = [false, true], other = false}", Category([False, True], other=False), False),
    ('{levels = ["f", "m"], other = false, missing = "cell"}', Category(["f", "m"], other=False), True),
    ("{levels = [1, 2, 3], ordered = true}", Category([1, 2, 3], ordered=True), False),
    ("{outer = [0, 1e6]}", PrivateBounds(outer=(0, 1e6)), False),
    ('{outer = [0, 1e6], share = 0.2, missing = "cell"}', PrivateBounds(0.2, (0, 1e6)), True),
]


@pytest.mark.parametrize(("entry", "expected", "cell"), ENTRIES)
def test_every_kind_of_entry(tmp_path, entry, expected, cell):
    path = tmp_path / "features.toml"
    path.write_text(f"[features]\nx = {entry}\n")
    assert read_features(path) == ({"x": expected}, ["x"] * cell)
    assert Bounds.from_file(path).domain(1, ["x"]).has_missing_cell(0) == cell


@pytest.mark.parametrize("suffix", [".json", ".JSON"])
def test_json_says_the_same(tmp_path, suffix):
    content = {
        "age": [0, 120],
        "bmi": {"lower": 10, "upper": 80, "missing": "cell"},
        "sex": {"levels": ["f", "m"], "other": False},
        "income": {"outer": [0, 1e6], "share": 0.2},
    }
    path = tmp_path / f"features{suffix}"
    path.write_text(json.dumps({"features": content}), encoding="utf-8-sig")
    entries, cells = read_features(path)
    assert entries == {
        "age": (0.0, 120.0),
        "bmi": (10.0, 80.0),
        "sex": Category(["f", "m"], other=False),
        "income": PrivateBounds(0.2, (0, 1e6)),
    }
    assert cells == ["bmi"]


@pytest.mark.parametrize("name", ["worst radius", "a.b", '"', "ünï", "", "a#b = [1]", "'"])
def test_names_may_hold_what_is_printable(tmp_path, name):
    path = tmp_path / "features.json"
    path.write_text(json.dumps({"features": {name: [0, 1]}}))
    assert Bounds.from_file(path).names == (name,)


ERRORS = [
    ("[0]", "x must be [lower, upper]"),
    ("[0, 1, 2]", "x must be [lower, upper]"),
    ('"0 to 1"', "x must be [lower, upper]"),
    ("3", "x must be [lower, upper]"),
    ("{}", "x must be [lower, upper]"),
    ("{lower = 0}", "x must be [lower, upper]"),
    ("{lower = 0, upper = 1, bins = 3}", "x must be [lower, upper]"),
    ('{lower = 0, upper = 1, levels = ["a"]}', "x must be [lower, upper]"),
    ('{missing = "cell"}', "x must be [lower, upper]"),
    ("{levels = [1], share = 0.1}", "x must be [lower, upper]"),
    ("{outer = [0, 1], ordered = true}", "x must be [lower, upper]"),
    ("{y = [0, 1]}", "A name with a dot in it needs quotes"),
    ('["a", "b"]', "For levels write x = {levels = ['a', 'b']}"),
    ("[true, 2]", "lower bound of x must be a number, got True"),
    ("[0, [1]]", "upper bound of x must be a number, got [1]"),
    (f"[0, 1{'0' * 400}]", "upper bound of x must be a number below 1e308"),
    ("[1, 0]", "bounds of x must be (lower, upper) with lower < upper, got (1.0, 0.0)"),
    ("[0, inf]", "bounds of x must be two finite numbers"),
    ("[nan, 1]", "bounds of x must be two finite numbers"),
    ("{levels = []}", "x: levels must be a list"),
    ('{levels = "ab"}', "x: levels must be a list"),
    ('{levels = ["a", 1]}', "x: levels must be a list"),
    ("{levels = [1979-05-27]}", "x: levels must be a list"),
    (f"{{levels = [1{'0' * 400}]}}", "x: levels must be a list"),
    ('{levels = ["a", "a "]}', "x: levels must be given once each"),
    ('{levels = ["a"], ordered = 1}', "x: ordered must be True or False"),
    ('{levels = ["a"], ordered = true, other = true}', "x: other must be False where levels are ordered"),
    ("{outer = [0]}", "x: outer must be a pair"),
    ('{outer = "ab"}', "x: outer must be a pair"),
    ("{outer = [1, 0]}", "x: bounds of outer must be"),
    ("{outer = [0, 1], share = 1}", "x: share must be a number between 0 and 1"),
    ('{lower = 0, upper = 1, missing = "drop"}', "missing of x must be 'cell' or 'error', got 'drop'"),
    ("{lower = 0, upper = 1, missing = true}", "missing of x must be 'cell' or 'error', got True"),
    ("{lower = 0, upper = 1, missing = [[]]}", "missing of x must be 'cell' or 'error', got [[]]"),
    ("[0, 1]\nx = [0, 1]", "cannot be read"),
    ("[lower, upper]", "cannot be read"),
]


@pytest.mark.parametrize(("entry", "message"), ERRORS)
def test_an_entry_that_cannot_be_used_is_named_with_its_file(tmp_path, entry, message):
    path = tmp_path / "features.toml"
    path.write_text(f"[features]\ngood = [0, 1]\nx = {entry}\n")
    with pytest.raises(InvalidParameterError, match=re.escape(message)) as found:
        Bounds.from_file(path)
    assert str(found.value).startswith(f"features file {path}")


FILES = [
    (".toml", "", "must hold one table named 'features'"),
    (".toml", "age = [0, 120]\n", "must hold one table named 'features'.*nothing else; found 'age'"),
    (".toml", "features = 3\n", "must hold one table named 'features'"),
    (".toml", "[features]\nage = [0, 120]\n[more]\n", "nothing else; found 'more'"),
    (".toml", "[features]\n# age = [lower, upper]\n", "that table is empty. In a draft, take away the #"),
    (".toml", "[features]\na.b = [0, 1]\n", "needs quotes"),
    (".toml", '[features]\n"a\\nb" = [0, 1]\n', "name must be printable text"),
    (".toml", f"[features]\n{'x' * 201} = [0, 1]\n", "name must be printable text of at most 200"),
    (".toml", "[features]\na = {outer=[0, 1], share=0.1}\nb = {outer=[0, 1], share=0.2}\n", "share must be the same"),
    (".toml", "x = " + "[" * 100_000, "cannot be read"),
    (".json", "[" * 100_000, "cannot be read"),
    (".json", "[]", "must hold one table"),
    (".json", "null", "must hold one table"),
    (".json", '{"features": {"age": [0, 1], "age": [0, 2]}}', "'age' occurs twice"),
    (".json", '{"features": {"age": [0, NaN]}}', "two finite numbers"),
    (".json", '{"features": {"age": [0, %s]}}' % ("1" * 5000), "cannot be read"),
]


@pytest.mark.parametrize(("suffix", "text", "message"), FILES)
def test_a_file_that_cannot_be_used_says_why(tmp_path, suffix, text, message):
    path = tmp_path / f"features{suffix}"
    path.write_text(text)
    with pytest.raises(InvalidParameterError, match=message) as found:
        Bounds.from_file(path)
    assert str(path) in str(found.value)


def test_a_file_in_another_encoding_or_a_folder_cannot_be_read(tmp_path):
    (tmp_path / "features.toml").write_bytes("[features]\nä = [0, 1]\n".encode("latin-1"))
    for path in (tmp_path / "features.toml", tmp_path):
        with pytest.raises(InvalidParameterError, match="cannot be read"):
            Bounds.from_file(path)


def test_the_example_in_the_manual_loads_and_has_every_kind_of_entry():
    entries, cells = read_features(EXAMPLE)
    assert {type(entry) for entry in entries.values()} == {tuple, Category, PrivateBounds}
    assert cells == ["bmi", "income"]
    assert EXAMPLE.read_text() in (EXAMPLE.parents[1] / "features-file.md").read_text()
    Bounds.from_file(EXAMPLE).domain(len(entries), list(entries))
