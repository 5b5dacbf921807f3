"""Planted bugs: each is noticed by the test that is named for it, and by an assertion of that test."""

import ast
import shutil
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from mutants import planted
from mutants.catalogue import BUGS
from mutants.make_table import PAGE, with_table
from mutants.patching import Patch, patched
from mutants.planted import PACKAGE, ROOT, Copy, Verdict, sources_of

EACH_BUG = pytest.mark.parametrize("bug", BUGS, ids=[bug.name.replace(" ", "-") for bug in BUGS])


# The catalogue fits the code ----------------------------------------------------------------------------------------------


def test_every_patch_can_be_applied_and_changes_something():
    """Each node is in its function once, also after the patches before it, and what comes out is other Python."""
    sources = sources_of(PACKAGE)
    for bug in BUGS:
        changed = patched(sources, bug.patches)
        assert changed, bug.name
        for file, text in changed.items():
            compile(text, file, "exec")
            assert ast.dump(ast.parse(text)) != ast.dump(ast.parse(sources[file])), (bug.name, file)


@cache
def functions_of(file):
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


def test_every_test_that_is_named_exists():
    for bug in BUGS:
        file, test = bug.caught_by.split("::")
        assert test.partition("[")[0] in functions_of(file), bug.name


def test_every_bug_says_where_it_was_seen():
    assert len({bug.name for bug in BUGS}) == len(BUGS)
    for bug in BUGS:
        assert bug.summary.endswith("."), bug.name
        assert bug.seen.endswith("."), bug.name
        assert bool(bug.source) is not bug.seen.startswith("No public case"), bug.name


def test_the_page_has_the_table_of_the_catalogue():
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run: python -m tests.helpers.mutants.make_table"


# The bugs are noticed -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def copy(tmp_path_factory):
    return Copy(tmp_path_factory.mktemp("planted"))


@pytest.mark.slow
def test_without_a_bug_all_of_these_tests_pass(copy):
    found = copy.run(sorted({bug.caught_by for bug in BUGS}))
    assert {node: one.why for node, one in found.items() if one.verdict is not Verdict.SURVIVED} == {}


@pytest.mark.slow
@EACH_BUG
def test_a_planted_bug_is_caught(copy, bug):
    found = copy.judge(bug.patches, bug.caught_by)
    assert found.verdict is Verdict.CAUGHT, found.why


# The judge can say no -----------------------------------------------------------------------------------------------------

NODE = "tests/privacy/test_guarantee.py::test_the_sensitivity_counts_cells_rows_and_relations"
HARMLESS = Patch("sensitivity", "changes = 2", "changes = 1 + 1")
JUDGED = {
    "a harmless patch survives": (HARMLESS, NODE, Verdict.SURVIVED),
    "a real one is caught": (Patch("sensitivity", "changes = 2", "changes = 1"), NODE, Verdict.CAUGHT),
    "a syntax error proves nothing": (Patch("sensitivity", "changes = 2", "changes = = 2"), NODE, Verdict.BROKEN),
    "nor does an error while importing": (replace(HARMLESS, top=("assert False",)), NODE, Verdict.BROKEN),
    "nor an assertion of the package": (Patch("sensitivity", "changes = 2", "assert False"), NODE, Verdict.BROKEN),
    "nor an error that is no assertion": (
        Patch("sensitivity", "changes = 2", "changes = 1 // 0"),
        NODE,
        Verdict.BROKEN,
    ),
    "nor a test that is not there": (
        HARMLESS,
        "tests/privacy/test_guarantee.py::test_that_nobody_wrote",
        Verdict.BROKEN,
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("patch", "node", "verdict"), JUDGED.values(), ids=JUDGED)
def test_the_judge_tells_what_is_caught_from_what_is_not(copy, patch, node, verdict):
    found = copy.judge([patch], node)
    assert found.verdict is verdict, found.why


@pytest.mark.slow
def test_another_copy_of_the_package_is_noticed(copy, monkeypatch, tmp_path):
    """A test that imports some other dpoutlier says nothing about the patch."""
    monkeypatch.setattr(copy, "source", tmp_path)
    found = copy.run([NODE])[NODE]
    assert found.verdict is Verdict.BROKEN
    assert "took dpoutlier from" in found.why


# Patches find their code --------------------------------------------------------------------------------------------------

WRITTEN = '''"""Noise is added here."""

from __future__ import annotations


class Release:
    @checked(by="hand")
    def noisy(self, exact, scale=1):
        noise = self.draw(len(exact), "größe", scale=scale)
        self.count(exact)
        return noise + exact if scale > 0 else exact
'''
REFACTORED = '''"""Moved here, where all noise is."""

from __future__ import annotations

class Exact:
    def noisy(self): return self.draw(len(self.exact), scale=0)

class Release:
    unit = "row"

    @checked(  # ä
        by='hand',
    )
    def noisy(self, exact, *, scale=(1), log=None) -> Any:
        drawn = self.draw(
            len( exact ),  # ö
            'größe', scale = scale,
        ); self.log(drawn)
        self.count( exact )
        return (drawn + exact) if scale>0 else exact
'''
PATCHED = {  # what is looked for, what comes instead, how the two files have it, and what they have then
    "expression": ("len(exact)", "1", "len(exact)", "len( exact )", "(1)"),
    "operator": ("scale > 0", "scale >= 0", "scale > 0", "scale>0", "(scale >= 0)"),
    "named argument": ("scale=scale", "scale=2 * scale", "scale=scale", "scale = scale", "scale=2 * scale"),
    "default value": ("1", "0", "1", "1", "(0)"),
    "decorator": ("by='hand'", "by=None", 'by="hand"', "by='hand'", "by=None"),
    "no statement": ("self.count(exact)", "", "self.count(exact)", "self.count( exact )", ""),
    "two statements": (
        "self.count(exact)",
        "if exact:\n    self.count(1)\nraise",
        "self.count(exact)",
        "self.count( exact )",
        "if exact:\n            self.count(1)\n        raise",
    ),
}


@pytest.mark.parametrize(("old", "new", "before", "refactored", "after"), PATCHED.values(), ids=PATCHED)
def test_a_patch_finds_its_node_after_a_refactoring_and_leaves_all_else(old, new, before, refactored, after):
    for file, source, code in (("trusted/release.py", WRITTEN, before), ("noise/add.py", REFACTORED, refactored)):
        sources = {"other.py": "def noisy(): pass\n", file: source}
        assert source.count(code) == 1
        patch = Patch("Release.noisy", old, new, top=("import os",))
        expected = source.replace(code, after).replace("annotations\n", "annotations\nimport os\n")
        assert patched(sources, [patch]) == {file: expected}


def test_each_patch_sees_those_before_it():
    patches = [
        Patch("Exact.noisy", "0", "1"),
        Patch("Exact.noisy", "scale=1", "scale=2"),
        Patch("Release", '"row"', "1"),
    ]
    expected = REFACTORED.replace("scale=0", "scale=2").replace('"row"', "(1)")
    assert patched({"a.py": REFACTORED}, patches) == {"a.py": expected}


@pytest.mark.parametrize(
    ("old", "new", "after"),
    [
        ("draw(n, ...)", "draw(1, ...)", "noise = (draw(1, *more, scale = 2)) + exact - 1"),
        ("draw(...)", "abs(draw(...))", "noise = (abs(draw(n, *more, scale = 2))) + exact - 1"),
        ("draw(n, *more, scale=...)", "...", "noise = ((2)) + exact - 1"),
        ("noise = ... - 1", "noise = 2 * ...", "noise = 2 * (draw(n, *more, scale = 2) + exact)"),
        ("draw(...) + ...", "draw(...) - ...", "noise = (draw(n, *more, scale = 2) - (exact)) - 1"),
        ("noise = ...", "noise = 0", "noise = 0"),
        ("draw(n, ...)", "draw(...)", "noise = (draw(*more, scale = 2)) + exact - 1"),
    ],
)
def test_dots_stand_for_any_expression_or_all_further_arguments(old, new, after):
    source = "def noisy(exact):\n    noise = draw(n, *more, scale = 2) + exact - 1\n"
    assert patched({"a.py": source}, [Patch("noisy", old, new)]) == {"a.py": f"def noisy(exact):\n    {after}\n"}


def test_several_dots_stand_for_what_they_stood_for_in_order():
    patches = [Patch("loud", "... if ... else f(...)", "g(..., ..., ...)")]
    assert patched({"a.py": "loud = a if b else f()\n"}, patches) == {"a.py": "loud = (g((a), (b), ))\n"}


@pytest.mark.parametrize(
    ("function", "old", "message"),
    [
        ("Release.loud", "len(self.exact)", "defined 0 times.* Such code is in noise/add.py:6"),
        ("Release.noisy", "1", "defined 2 times.* trusted/release.py:8, noise/add.py:14"),
        ("oise:Release.noisy", "len(noise)", "defined 0 times.* Such code is nowhere"),
        ("noise:Release.noisy", "len(noise)", "this code 0 times"),
        ("noise:Release.noisy", "len(self.exact)", "this code 0 times.* Such code is in noise/add.py:6"),
        ("noise:Release.noisy", "self.count(exact)\nself.log(drawn)", "this code 0 times"),
        ("noise.add:Release.noisy", "drawn", "this code 2 times.* noise/add.py:18, noise/add.py:20"),
        ("trusted:Release", "", "this code 0 times"),
    ],
)
def test_a_patch_that_fits_nowhere_or_in_several_places_is_an_error(function, old, message):
    with pytest.raises(ValueError, match=message):
        patched({"trusted/release.py": WRITTEN, "noise/add.py": REFACTORED}, [Patch(function, old, "2")])


def test_a_copy_is_made_whatever_others_do_in_the_caches_meanwhile(tmp_path, monkeypatch):
    """Files that are being written stay out, one that vanishes is left out, and of two numba caches ours is renamed."""
    original, copied = tmp_path / "dpoutlier", tmp_path / "copy" / "src" / "dpoutlier"
    index = original / "kernels" / "__pycache__" / "kernels-0"
    ours, others = index / planted._numba_folder(original / "kernels"), index / "kernels_of-another-place"
    for folder in (ours, others):
        folder.mkdir(parents=True)
        (folder / "walk.nbi").write_text(folder.name)
        (folder / "walk.nbi.tmp.7f").touch()
    for name in ("__init__.py", "__pycache__/a.cpython-311.pyc", "__pycache__/b.pyc", "__pycache__/a.pyc.1394"):
        (original / name).parent.mkdir(exist_ok=True)
        (original / name).touch()
    copy2 = shutil.copy2

    def vanishing(source, target):
        if Path(source).name == "b.pyc":
            Path(source).unlink()
        return copy2(source, target)

    monkeypatch.setattr(planted, "PACKAGE", original)
    monkeypatch.setattr(planted.compileall, "compile_dir", lambda *given, **named: True)
    monkeypatch.setattr(shutil, "copy2", vanishing)
    copy = Copy(tmp_path / "copy")
    assert copy.package == copied
    cache = copied / "kernels" / "__pycache__" / "kernels-0"
    assert {str(path.relative_to(cache)): path.read_text() for path in cache.rglob("*") if path.is_file()} == {
        f"{planted._numba_folder(copied / 'kernels')}/walk.nbi": ours.name,
        f"{others.name}/walk.nbi": others.name,
    }
    assert {path.name for path in (copied / "__pycache__").iterdir()} == {"a.cpython-311.pyc"}
    (original / "__init__.py").unlink()
    with pytest.raises(FileNotFoundError):
        planted._copy_if_there(str(original / "__init__.py"), str(tmp_path / "nowhere"))


@pytest.mark.slow
def test_the_copy_is_as_it_was_after_a_bug(tmp_path):
    copy = Copy(tmp_path)
    path, before = copy.package / "privacy/guarantee.py", (PACKAGE / "privacy/guarantee.py").read_bytes()
    stamp = path.stat().st_mtime_ns
    with pytest.raises(ValueError, match="0 times"), copy.planted([HARMLESS, HARMLESS]):
        pytest.fail("the second patch finds nothing to replace")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
    with copy.planted([HARMLESS]):
        assert path.read_bytes() != before
        assert path.stat().st_mtime_ns != stamp
    assert (path.read_bytes(), path.stat().st_mtime_ns) == (before, stamp)
