"""What scores tell: which points an attacker asks for, and how much of the counts their scores give away."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.evidence import log_ratios_of_counts, other_releases
from dpoutlier.audit.worlds import FAR, Worlds, cells_of, made_points
from dpoutlier.model.model import Model
from dpoutlier.scoring.log_counts import TERM_UNIT, LogCounts
from dpoutlier.scoring.nearest_cells import NearestCells

STEPS = 4001
MAX_PAIRS = 2**21


class Questions(NamedTuple):
    """Points whose scores an attacker asks for, and the evidence that the answers give."""

    points: Any
    evidence: Callable[[Model, NDArray[np.float64]], float]


def questions_for(worlds: Worlds, model: Model) -> Questions:
    """The most telling questions that are known for this detector."""
    if isinstance(model.scorer, NearestCells):
        return _first_cells(worlds)
    chain = _chain(worlds, model)
    if isinstance(model.scorer, LogCounts) and chain is not None:
        return _decoded(worlds, model, chain)
    return _plain(worlds)


def _first_cells(worlds: Worlds) -> Questions:
    """A walk that ends where it begins says that the cell holds k rows, and nothing else about its count."""
    points = made_points(worlds.configuration, np.stack([worlds.place, worlds.other]))

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:
        ended = scores == 0
        return float(ended[0]) - float(ended[1]) * worlds.configuration.replaces + other_releases(model, worlds)

    return Questions(points, evidence)


def _plain(worlds: Worlds) -> Questions:
    """The smaller the score at the place, the more rows are there."""
    points = made_points(worlds.configuration, np.stack([worlds.place, worlds.other]))

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:  # noqa: ARG001 - an estimated threshold is on another scale
        return float(scores[1] * worlds.configuration.replaces - scores[0])

    return Questions(points, evidence)


def way(place: NDArray[np.float64], other: NDArray[np.float64]) -> NDArray[np.float64]:
    """From one place to another, a feature at a time: of shape (..., n_features + 1, n_features)."""
    d = place.shape[-1]
    moved = np.arange(d) < np.arange(d + 1)[:, np.newaxis]
    return np.where(moved, other[..., np.newaxis, :], place[..., np.newaxis, :])


def _chain(worlds: Worlds, model: Model) -> NDArray[np.float64] | None:
    """Places from one to the other such that each step changes one of their cells; None if there is no such way."""
    if worlds.configuration.n_features == 1:
        places = np.linspace(worlds.place[0], worlds.other[0], STEPS)[:, np.newaxis]
    else:
        places = way(worlds.place, worlds.other)
    cells = cells_of(model, places)
    moved = (cells[1:] != cells[:-1]).any(axis=2).sum(axis=1)
    kept = np.append(0, np.flatnonzero(moved) + 1)
    whole = (moved <= 1).all() and len(kept) == cells.shape[1] + 1
    return places[kept] if whole else None


def _decoded(worlds: Worlds, model: Model, chain: NDArray[np.float64]) -> Questions:
    """Ask for all points of the chain, and work the counts out again."""
    points = made_points(worlds.configuration, chain)
    cells = cells_of(model, chain)
    members = (cells[1:] != cells[:-1]).any(axis=2).argmax(axis=1)
    steps = np.arange(len(members))
    ids = np.stack([cells[steps, members], cells[steps + 1, members]], axis=1).reshape(-1, 2)
    changed = worlds.changed(model)
    places = {tuple(cell): i for i, cell in enumerate(changed.ids.tolist())}
    where = np.array([places.get(tuple(cell), -1) for cell in ids.tolist()])
    here, there = (np.where(where >= 0, counts[where], 0) for counts in (changed.here, changed.there))
    code = code_for(model, worlds.crowd, worlds.configuration.rows_per_person)

    def evidence(model: Model, scores: NDArray[np.float64]) -> float:
        noisy, known = code.counts(scores)
        ratios = log_ratios_of_counts(model, noisy.ravel(), here, there)
        return float(ratios[known.repeat(2) & (where >= 0)].sum()) + other_releases(model, worlds)

    return Questions(points, evidence)


class Code:
    """Counts from scores that are sums of logarithms.

    Between two points of a chain one cell changes, so that their scores differ by two logarithms of whole numbers. Logarithms are
    kept to 32 bits, and there are far fewer pairs of likely counts than such differences: one difference mostly gives both counts.
    Some pairs share theirs, as ratios of whole numbers do; then the likelier is taken. Equal counts differ by nothing; if that is
    so at one step, the score of the first point itself tells which they are.
    """

    def __init__(self, scorer: LogCounts, rate: float, members: int, crowd: int, rows_per_person: int) -> None:
        scale = 1 / rate
        reach = min(int(FAR * scale) + rows_per_person + 1, int(MAX_PAIRS**0.5) // 2)
        self.members = members
        self.likely = np.arange(max(crowd - reach, 0), crowd + reach + 1)
        self.terms = scorer.logarithms(self.likely, 1)
        differences = (self.terms[:, np.newaxis] - self.terms).ravel()
        strange = np.abs(self.likely - crowd)
        self.order = np.lexsort(
            ((strange[:, np.newaxis] + strange).ravel(), differences)
        )  # of equal ones the likeliest first
        self.differences = differences[self.order]
        self.single, self.count_of = np.unique(self.terms, return_index=True)

    def counts(self, scores: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """From chains of scores, of shape (..., steps + 1): the counts before and after each step, and whether they are known."""
        totals = np.rint(-scores * self.members * TERM_UNIT).astype(np.int64)
        wanted = totals[..., :-1] - totals[..., 1:]
        first = np.minimum(np.searchsorted(self.differences, wanted), len(self.differences) - 1)
        equal = wanted == 0
        known = (self.differences[first] == wanted) & ~equal
        before, after = np.divmod(self.order[first], len(self.likely))
        # What is left of the first score if all steps but one are known.
        left = totals[..., 0] - np.where(known, self.terms[before], 0).sum(axis=-1)
        place = np.minimum(np.searchsorted(self.single, left), len(self.single) - 1)
        solved = (equal.sum(axis=-1) == 1) & ((known | equal).all(axis=-1)) & (self.single[place] == left)
        filled = equal & solved[..., np.newaxis]
        before, after = (np.where(filled, self.count_of[place][..., np.newaxis], found) for found in (before, after))
        return np.stack([self.likely[before], self.likely[after]], axis=-1), known | filled


_code = lru_cache(maxsize=1)(Code)  # all fits of a case share it


def code_for(model: Model, crowd: int, rows_per_person: int) -> Code:
    """The code of this model's scores."""
    assert isinstance(model.scorer, LogCounts)
    return _code(model.scorer, float(model.noise_laws[0].rate), model.partition.cells_per_row, crowd, rows_per_person)
