"""All scoring rules, by the word for them in files: a new one is its own file in this folder and one line here."""

from typing import Any

from dpoutlier.scoring.base import Scorer
from dpoutlier.scoring.log_counts import LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells

SCORERS: dict[str, Any] = {"nearest-cells": NearestCells, "log-counts": LogCounts}


def scorer_from_json(content: dict[str, Any]) -> Scorer:
    """The rule that ``to_json`` described; KeyError for a name that is not known."""
    found: Scorer = SCORERS[content["name"]].from_json(content)
    return found
