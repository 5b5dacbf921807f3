"""What commands say of a threshold, and first of all whether it can be relied on."""

from typing import TYPE_CHECKING

from dpoutlier.cli.progress import say

if TYPE_CHECKING:
    from dpoutlier.scoring.false_alarms import FalseAlarms

REMEDY = "Set one yourself by a score, or fit with more rows times epsilon or a larger --threshold-share."


def warn_of(found: "FalseAlarms | None", remedy: str = REMEDY, *, stderr: bool = False) -> None:
    """One yellow line, before all else, if the threshold cannot be relied on."""
    if found is not None and not found.trusted:
        say(f"The threshold cannot be trusted: {doubt(found)}. {remedy}", "yellow", stderr=stderr)


def doubt(found: "FalseAlarms") -> str:
    from dpoutlier.scoring.false_alarms import percent  # noqa: PLC0415 - it imports numpy, and --help must not wait for it

    if found.upper == 0:
        return "it lies above every score, so no point is ever flagged"
    return f"it may flag {percent(found.lower)} to {percent(found.upper)} of normal points ({percent(found.level)} confidence)"
