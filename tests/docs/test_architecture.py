"""The page on the architecture is what its script writes, and names files that exist."""

import re
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_page_and_picture_are_what_the_script_writes():
    script = runpy.run_path(str(ROOT / "docs/make_architecture.py"))
    assert (ROOT / "docs/architecture.md").read_text() == script["page"](), "run make architecture"
    assert (ROOT / "docs/architecture.svg").read_text() == script["picture"](), "run make architecture"


def test_every_file_and_folder_that_the_page_names_exists():
    named = re.findall(r"`([\w/]+(?:/|\.py))`", (ROOT / "docs/architecture.md").read_text())
    assert len(named) > 15
    for name in named:
        assert any((base / name).exists() for base in (ROOT / "src/dpoutlier", ROOT)), name
