"""What scores tell: which points an attacker asks for, and how much of the counts their scores give away."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.evidence import log_ratios_of_counts, other_releases
from dpoutlier.audit.worlds import FAR, Worlds, cells_of, made_points
from dpoutlier.model import Model
from dpoutlier.scoring.log_counts import TERM_UNIT, LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells

__all__ = ["Questions", "questions_for"]

STEPS = 4001
MOST_PAIRS = 2**23


class Questions(NamedTuple):
    """Points whose scores an attacker asks for, and the evidence that he finds in the answers."""

    points: Any
    evidence: Callable[[Model, NDArray[np.float64]], float]


def questions_for(worlds: Worlds, model: Model) -> Questions:
    """The most telling questions that are known for this detector."""
    if isinstance(model.scorer, NearestCells):
        return _first_cells(worlds)
    chain = _chain(worlds, model)
    if isinstance(model.scorer, LogCounts) and chain is not None:
        return _decoded(worlds, model, model.scorer, chain)
    return _plain(worlds)


def _first_cells(worlds: Worlds) -> Questions:
    """A walk that ends where it begins says that the cell holds k rows, and nothing else about its count."""
    points = made_points(worlds.configuration, np.stack([worlds.place, worlds.other]))

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:
        ended = scores == 0
        return float(ended[0]) - float(ended[1]) * worlds.replaces + other_releases(model, worlds)

    return Questions(points, evidence)


def _plain(worlds: Worlds) -> Questions:
    """The smaller the score at the place, the more rows are there."""
    points = made_points(worlds.configuration, np.stack([worlds.place, worlds.other]))

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:  # noqa: ARG001 - what was bought is on another scale
        return float(scores[1] * worlds.replaces - scores[0])

    return Questions(points, evidence)


def _chain(worlds: Worlds, model: Model) -> NDArray[np.float64] | None:
    """Places from one to the other such that each step changes one of their cells; None if there is no such way."""
    d = worlds.configuration.n_features
    if d == 1:
        places = np.linspace(worlds.place[0], worlds.other[0], STEPS)[:, np.newaxis]
    else:
        places = np.where(np.arange(d) < np.arange(d + 1)[:, np.newaxis], worlds.other, worlds.place)
    cells = cells_of(model, places)
    moved = (cells[1:] != cells[:-1]).any(axis=2).sum(axis=1)
    kept = np.append(0, np.flatnonzero(moved) + 1)
    whole = (moved <= 1).all() and len(kept) == cells.shape[1] + 1
    return places[kept] if whole else None


def _decoded(worlds: Worlds, model: Model, scorer: LogCounts, chain: NDArray[np.float64]) -> Questions:
    """Between two points of the chain one cell changes, so that their scores differ by two logarithms of whole numbers.

    Logarithms are kept to 32 bits, and there are far fewer pairs of likely counts than such differences: one difference mostly
    tells both counts. Some pairs share theirs, as ratios of whole numbers do; then the likelier is taken. Equal counts differ by
    nothing; if that is so at one step, the score of the first point itself tells which they are.
    """
    points = made_points(worlds.configuration, chain)
    cells = cells_of(model, chain)
    members = (cells[1:] != cells[:-1]).any(axis=2).argmax(axis=1)
    steps = np.arange(len(members))
    ids = np.stack([cells[steps, members], cells[steps + 1, members]], axis=1).reshape(-1, 2)
    changed = worlds.changed(model)
    places = {tuple(cell): i for i, cell in enumerate(changed.ids.tolist())}
    where = np.array([places.get(tuple(cell), -1) for cell in ids.tolist()])
    here, there = (np.where(where >= 0, counts[where], 0) for counts in (changed.here, changed.there))
    code, trees = _Code(worlds, model, scorer), cells.shape[1]

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:
        totals = np.rint(-scores * trees * TERM_UNIT).astype(np.int64)
        noisy, known = code.counts(totals)
        ratios = log_ratios_of_counts(model, noisy.ravel(), here, there)
        return float(ratios[known.repeat(2) & (where >= 0)].sum()) + other_releases(model, worlds)

    return Questions(points, evidence)


class _Code:
    """Counts from sums of logarithms."""

    def __init__(self, worlds: Worlds, model: Model, scorer: LogCounts) -> None:
        scale = 1 / float(model.noise_laws[0].rate)
        reach = min(int(FAR * scale) + worlds.rows_per_person + 1, int(MOST_PAIRS**0.5) // 2)
        self.likely = np.arange(max(worlds.crowd - reach, 0), worlds.crowd + reach + 1)
        self.terms = scorer.logarithms(self.likely, 1, 1)
        differences = (self.terms[:, np.newaxis] - self.terms).ravel()
        strange = np.abs(self.likely - worlds.crowd)
        self.order = np.lexsort(
            ((strange[:, np.newaxis] + strange).ravel(), differences)
        )  # of equal ones the likeliest first
        self.differences = differences[self.order]

    def counts(self, totals: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Of each step the counts before and after, and whether they are known."""
        wanted = totals[:-1] - totals[1:]
        first = np.minimum(np.searchsorted(self.differences, wanted), len(self.differences) - 1)
        known = (self.differences[first] == wanted) & (wanted != 0)
        before, after = np.divmod(self.order[first], len(self.likely))
        (equal,) = np.nonzero(wanted == 0)
        if len(equal) == 1:
            (found,) = np.nonzero(self.terms == totals[0] - self.terms[before[known]].sum())
            if len(found) == 1:
                before[equal], after[equal], known[equal] = found[0], found[0], True
        return np.stack([self.likely[before], self.likely[after]], axis=1), known
