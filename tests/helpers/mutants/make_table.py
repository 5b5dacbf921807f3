"""Write the table of docs/planted-bugs.md from the catalogue: ``python -m tests.helpers.mutants.make_table``."""

import re
import sys
from pathlib import Path

from .catalogue import BUGS, PARTS, PlantedBug

PAGE = Path(__file__).parents[3] / "docs" / "planted-bugs.md"
START, END = "<!-- the table: made by tests/helpers/mutants/make_table.py -->", "<!-- end of the table -->"


def table() -> str:
    """All bugs, under a heading for each part of what the promise rests on."""
    return "\n".join(_part(part, bugs) for part, bugs in PARTS.items())


def _part(part: str, bugs: list[PlantedBug]) -> str:
    head = "| bug | what the patch does | seen in the wild | caught by |\n|---|---|---|---|"
    return "\n".join([f"## {part}\n", head, *map(_row, bugs), ""])


def _row(bug: PlantedBug) -> str:
    seen = f"{bug.seen} *{_linked(bug.source)}*" if bug.source else bug.seen
    file, test = bug.caught_by.split("::", 1)
    cells = (f"**{bug.name}**", f"{bug.summary} `{bug.function}`", seen, f"`{file.removeprefix('tests/')}` `{test}`")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _linked(source: str) -> str:
    return re.sub(r"([\w.-]+/[\w.-]+)#(\d+)", r"[\1#\2](https://github.com/\1/issues/\2)", source)


def with_table(page: str) -> str:
    """The page with the table of today."""
    before, rest = page.split(START)
    after = rest.split(END)[1]
    return f"{before}{START}\n\n{len(BUGS)} bugs.\n\n{table()}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}: {len(BUGS)} bugs\n")
