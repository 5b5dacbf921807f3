"""What the commands of all attacks share: arguments, tables, and what is handed to the summary."""

import argparse
import time
from pathlib import Path
from typing import NamedTuple

from pictures import in_style


class Settings(NamedTuple):
    """What was asked for on the command line."""

    seed: int | None
    quick: bool

    def pick(self, usual, quick):
        """The number for a usual run, or for a quick one."""
        return quick if self.quick else usual


class Finding(NamedTuple):
    """A line of the summary, in words."""

    attack: str
    broken: str
    ours: str
    bound: str
    verdict: str


AS_PROMISED, TOO_MUCH, NO_POWER = "as promised", "REFUTED: more than permitted", "BLIND: the mistake is not found"


def verdict(ours, broken, bound):
    """The verdict on (guesses, what is permitted) of the library, and on the share that the mistake surely gives beside its bound.

    The library must be compatible with the bound, and the mistake above it: else the attack could not have seen one here.
    """
    if any(found.surely > permitted for found, permitted in ours):
        return TOO_MUCH
    return AS_PROMISED if broken > bound else NO_POWER


def seed_of(text):
    return None if text == "system" else int(text)


def arguments(about):
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("attacks"), help="folder for the picture (default: attacks)")
    parser.add_argument(
        "--seed",
        type=seed_of,
        default=1,
        help="a whole number, from which all noise follows (default: 1), or 'system' for the noise that fits have in use",
    )
    parser.add_argument("--quick", action="store_true", help="fewer trials, in a few seconds")
    return parser


def print_table(title, columns, rows):
    """A table in plain text."""
    lines = [columns, *([str(entry) for entry in row] for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(columns))]
    print(f"\n{title}\n")
    for number, line in enumerate(lines):
        print("  " + "  ".join(entry.ljust(width) for entry, width in zip(line, widths, strict=True)).rstrip())
        if number == 0:
            print("  " + "  ".join("-" * width for width in widths))


def perform(attack, out, settings):
    """Run one attack: measure, print, draw."""
    begin = time.perf_counter()
    measured = attack.measure(settings)
    attack.report(measured)
    with in_style():
        path = attack.draw(measured, out)
    print(f"\n  {path}, {time.perf_counter() - begin:.1f} s")
    return attack.summary(measured)


def main(attack):
    """The command of one attack."""
    given = arguments(attack.__doc__).parse_args()
    perform(attack, given.out, Settings(given.seed, given.quick))
