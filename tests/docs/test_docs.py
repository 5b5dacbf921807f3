"""Python in the README and in docs/ runs; links lead somewhere."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "src").rglob("*.md")]
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]


@pytest.mark.filterwarnings("error::dpoutlier.exceptions.ColumnNamesWarning")
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL):
        exec(compile(block, str(page), "exec"), names)
    if page.name == "README.md":
        assert capsys.readouterr().out.startswith("[ 1 -1]\nPrivacy statement")


@pytest.mark.slow
def test_commands_of_the_readme_run_after_its_python(tmp_path, monkeypatch):
    text = (ROOT / "README.md").read_text()
    (python,), (_, commands) = (re.findall(rf"```{kind}\n(.*?)```", text, re.DOTALL) for kind in ("python", "sh"))
    monkeypatch.chdir(tmp_path)
    exec(compile(python, "README.md", "exec"), {})
    programs = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e", "-c", commands], check=True, env=os.environ | programs)
    assert len((tmp_path / "scores.csv").read_text().splitlines()) == 3


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_links_to_files_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_paper_s_page_names_files_and_functions_that_exist():
    """`privacy/guarantee.py: sensitivity` is a name that `src/dpoutlier/privacy/guarantee.py` defines."""
    page = (ROOT / "docs/paper-to-code.md").read_text().split("## The authors")[0]
    named = re.findall(r"`([\w/]+\.py)(?:: (\w+))?`", page)
    assert len(named) > 40
    for path, name in named:
        below = ROOT if path.startswith(("tests", "experiments")) else ROOT / "src/dpoutlier"
        code = (below / path).read_text()
        assert not name or re.search(rf"^(?:def|class) {name}\b|^{name}\b", code, re.MULTILINE), (path, name)


def test_every_mark_of_the_proof_is_in_the_code_and_every_test_that_it_names_exists():
    proof = (ROOT / "src/dpoutlier/trusted/PROOF.md").read_text()
    code = "".join(path.read_text() for path in (ROOT / "src/dpoutlier/trusted").glob("*.py"))
    marks = set(re.findall(r"\(P\d+\)", proof))
    assert len(marks) == 11
    assert marks == set(re.findall(r"\(P\d+\)", code))
    tests = {path.stem: path.read_text() for path in (ROOT / "tests").rglob("test_*.py")}
    for name in re.findall(r"`(test_\w+?)(?:\.\.\.)?`", proof):
        assert name in tests or re.search(rf"def {name.removesuffix('_')}", "".join(tests.values())), name
