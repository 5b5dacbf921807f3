"""Changes of a ledger's anchor, as ``show`` and ``verify`` print them."""

from dataclasses import asdict
from typing import Any

from dpoutlier.cli.progress import say
from dpoutlier.ledger.ledger import Ledger

HOW = {
    "moved": "the anchor was moved from {old} to {new}.",
    "lost": "the anchor {old} was declared lost, and {new} is used instead.",
    "override": "{new} was given as the anchor (--anchor, anchor=...) instead of {old}.",
}
NOT_CHECKED = (
    "At that time the old anchor could not be read, or was empty. To find out whether this ledger is an old copy, check it against "
    "models, noted heads, and the old anchor if it still exists: dpoutlier ledger verify LEDGER MODELS... --head HASH --anchor OLD"
)


def anchors_as_json(opened: Ledger) -> list[dict[str, Any]]:
    return [{"entry": one.pop("number"), **one} for one in map(asdict, opened.anchor_changes())]


def print_anchors(opened: Ledger) -> None:
    """A line for each change, and what it means where the old anchor was not asked."""
    changes = opened.anchor_changes()
    for one in changes:
        change = HOW[one.how].format(old=one.old or "none", new=one.new)
        when = f"Entry {one.number}, {(one.time or '')[:16].replace('T', ' ')}"
        when = "Not recorded yet; the next entry will record it" if one.number is None else when
        style = None if one.how == "moved" else "yellow"
        say(f"{when}: {change}", style=style)
    if any(one.how != "moved" for one in changes):
        say(NOT_CHECKED, style="yellow")
