"""Write command-line.md from what --help prints, so that the manual cannot lag."""

import os
import sys
from pathlib import Path

os.environ["COLUMNS"] = os.environ["TERMINAL_WIDTH"] = "100"

from typer.models import CommandInfo
from typer.testing import CliRunner

from dpoutlier.cli.app import app

INTRODUCTION = """\
# The command line

`dpoutlier` reads CSV and Parquet files and writes [model files](model-file.md). Its exit code is 0, or 2 if it cannot use
its input (the message says what and why), or 1 if the machine failed, for example by a full disk, or 3 if `watch` sees a drift.
Files are
written aside and renamed when they are complete. An existing file is replaced only with `--force`.

In a CSV file the first line names the columns. [Features](features-file.md) are found by name. `fit` ignores other columns, and
`score` passes them through. In *reference* rows a value that does not parse as a number is missing, and a line with
too few or too many fields is not a row. Neither is ever reported, since a message would reveal something about a row. In
*points* both are errors that say where. In a feature that has a cell for missing values, a value that does not parse is missing.

This page is written by `make manual` from what `--help` prints.
"""


def commands() -> list[list[str]]:
    """The words of every command, those of groups after the others."""
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    alone = [[name_of(command)] for command in app.registered_commands]
    return alone + [[str(name), name_of(one)] for name, group in groups.items() for one in group.registered_commands]


def name_of(command: CommandInfo) -> str:
    """The word for a command."""
    return command.name or getattr(command.callback, "__name__", "").replace("_", "-")


def manual() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for words in commands():
        printed = CliRunner().invoke(app, [*words, "--help"], prog_name="dpoutlier").output
        parts.append(f"## dpoutlier {' '.join(words)}\n\n```text\n{printed.strip()}\n```\n")
    return "\n".join(parts)


if __name__ == "__main__":
    if "--print" in sys.argv:
        print(manual(), end="")
    else:
        (Path(__file__).parent / "command-line.md").write_text(manual(), encoding="utf-8")
