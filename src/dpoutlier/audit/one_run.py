"""One fit with thousands of canaries: a coin decides whether each is in the data, and the attacker guesses the coins."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.confidence import CERTAIN, PRUDENCE, REPORTED, epsilon_of_guesses
from dpoutlier.audit.configuration import Configuration
from dpoutlier.audit.events import PRACTICE
from dpoutlier.audit.evidence import log_ratios_of_counts
from dpoutlier.audit.files import folder_in_memory, open_file
from dpoutlier.audit.scores import code_for, way
from dpoutlier.audit.seeds import seed_of
from dpoutlier.audit.worlds import MAX_ROWS, cells_of, crowd_for, made_points
from dpoutlier.counts.base import noisy_counts
from dpoutlier.model.model import Model
from dpoutlier.partitions.base import CellIds
from dpoutlier.scoring.nearest_cells import NearestCells

MIN_TRIED, MAX_TRIED = 200, 200_000


class Guesses(NamedTuple):
    """Evidence for each canary that it is in the data, and whether it is."""

    evidence: NDArray[np.float64]
    coins: NDArray[np.bool_]


@dataclass(frozen=True)
class Canaries:
    """Places that share no cell with each other: so that no canary hides another."""

    configuration: Configuration
    places: NDArray[np.float64]
    """Places of canaries, of shape (n, 2, n_features): for heads, and for tails if a canary moves instead of being left out."""
    cells: CellIds
    """Their cells, of shape (n, 2, cells per row, 2)."""
    crowd: int
    by_score: bool = False
    """Whether both places have a crowd: so that scores tell all counts apart."""

    def table(self, coins: NDArray[np.bool_]) -> Any:
        """Each person has a canary, as many times as a person may have rows; a crowd lies at all places."""
        own, people = self.places[:, 0][coins], np.flatnonzero(coins)
        if self.configuration.replaces:
            own = np.concatenate([own, self.places[:, 1][~coins]])
            people = np.concatenate([people, np.flatnonzero(~coins)])
        crowd = self.places[:, : 1 + (self.configuration.replaces or self.by_score)].reshape(-1, self.places.shape[2])
        rows = np.concatenate(
            [own.repeat(self.configuration.rows_per_person, axis=0), crowd.repeat(self.crowd, axis=0)]
        )
        others = len(coins) + np.arange(len(crowd) * self.crowd)
        return self.configuration.table(
            rows, np.concatenate([people.repeat(self.configuration.rows_per_person), others])
        )


def canaries_of(configuration: Configuration, wanted: int, *, by_score: bool = False) -> Canaries:
    """Up to ``wanted`` canaries at random places. A place is used if none of its cells is in use yet.

    ``by_score`` gives each a second place and a crowd, also where it is not moved: for scores of forests and marginals.
    """
    model = configuration.model()
    pairs = by_score or configuration.replaces
    crowd = crowd_for(configuration, model) if by_score or isinstance(model.scorer, NearestCells) else 0
    wanted = min(wanted, MAX_ROWS // ((1 + pairs) * (crowd + configuration.rows_per_person))) * (1 + pairs)
    room = model.partition.n_cells // model.partition.cells_per_row  # for so many at most
    places = np.random.default_rng(0).random(
        (min(8 * min(wanted, room) + MIN_TRIED, MAX_TRIED), configuration.n_features)
    )
    cells = cells_of(model, places)
    taken: set[tuple[int, int]] = set()
    kept: list[int] = []
    for i, own in enumerate(cells.tolist()):
        if len(kept) == wanted:
            break
        if taken.isdisjoint(map(tuple, own)):
            taken.update(map(tuple, own))
            kept.append(i)
    found = np.array(kept, np.intp)
    both = found[: len(found) // 2 * 2].reshape(-1, 2) if pairs else found[:, np.newaxis].repeat(2, axis=1)
    return Canaries(configuration, places[both], cells[both], crowd, by_score)


def guess_coins(canaries: Canaries, channels: tuple[str, ...], fit: int, seed: int | None) -> dict[str, Guesses]:
    """One fit: toss the coins, release, and weigh the evidence for each canary through each channel."""
    configuration = canaries.configuration
    random = np.random.default_rng(None if seed is None else seed_of(seed, "coins", fit))
    coins = random.random(len(canaries.places)) < 0.5
    own = None if seed is None else seed_of(seed, "canaries", repr(configuration), fit)
    fitted = configuration.fit(canaries.table(coins), own)
    model: Model = fitted.model_
    found = {}
    if "counts" in channels:
        noisy = noisy_counts(model.counts, np.ascontiguousarray(canaries.cells.reshape(-1, 2)))
        found["counts"] = Guesses(_weighed(canaries, model, noisy), coins)
    if "scores" in channels:
        look = _ended if isinstance(model.scorer, NearestCells) else _decoded
        found["scores"] = Guesses(look(canaries, fitted), coins)
    if "file" in channels:
        with folder_in_memory() as folder:
            opened = open_file(fitted.save(Path(folder) / "model"))
        found["file"] = Guesses(_weighed(canaries, model, opened.look_up(canaries.cells.reshape(-1, 2))), coins)
    return found


def _weighed(canaries: Canaries, model: Model, noisy: NDArray[Any]) -> NDArray[np.float64]:
    noisy = noisy.reshape(canaries.cells.shape[:3])
    here, there = (
        np.full(noisy.shape, canaries.crowd + own, np.int64) for own in (canaries.configuration.rows_per_person, 0)
    )
    ratios = log_ratios_of_counts(model, noisy, here, there).sum(axis=2)
    return np.asarray(ratios[:, 0] - ratios[:, 1] if canaries.configuration.replaces else ratios[:, 0])


def _ended(canaries: Canaries, fitted: Any) -> NDArray[np.float64]:
    """Whether the walk from each place ends at once: 1 or -1. For moved canaries, the difference of both places."""
    places = canaries.places[:, : 1 + canaries.configuration.replaces]
    points = made_points(canaries.configuration, places.reshape(-1, places.shape[2]))
    ended = (fitted.outlier_scores(points) == 0).reshape(places.shape[:2]).astype(float)
    return np.asarray(ended[:, 0] - ended[:, 1] if canaries.configuration.replaces else 2 * ended[:, 0] - 1)


def _decoded(canaries: Canaries, fitted: Any) -> NDArray[np.float64]:
    """Logarithms of counts, computed from the scores on the way from each canary's place to its other place."""
    model: Model = fitted.model_
    chains = way(canaries.places[:, 0], canaries.places[:, 1])
    points = made_points(canaries.configuration, chains.reshape(-1, chains.shape[2]))
    code = code_for(model, canaries.crowd, canaries.configuration.rows_per_person)
    noisy, known = code.counts(fitted.outlier_scores(points).reshape(chains.shape[:2]))
    here, there = (
        np.full(noisy.shape, canaries.crowd + own, np.int64) for own in (canaries.configuration.rows_per_person, 0)
    )
    ratios = np.where(known[..., np.newaxis], log_ratios_of_counts(model, noisy, here, there), 0.0).sum(axis=1)
    return np.asarray(ratios[:, 0] - ratios[:, 1] if canaries.configuration.replaces else ratios[:, 0])


def bound_by_guesses(fits: list[Guesses]) -> tuple[float, float, int]:
    """Bounds on epsilon, reported and certain, and the number of guesses.

    The first fits show how strong evidence must be for a guess to pay; on all others a coin is guessed where it is as strong, and
    left alone elsewhere. Where there is one fit only, every coin is guessed. Fits are independent, so that their guesses add up.
    """
    n = math.ceil(len(fits) * PRACTICE) if len(fits) > 1 else 0
    practice, counted = fits[:n], _joined(fits[n:])
    strong = _worth_a_guess(_joined(practice), (len(fits) - n) / n) if n else 0.0
    guessed = (np.abs(counted.evidence) >= strong) & (counted.evidence != 0)
    made = int(guessed.sum())
    right = int(((counted.evidence > 0) == counted.coins)[guessed].sum())
    if not made:
        return 0.0, 0.0, 0
    reported, certain = (float(epsilon_of_guesses(right, made, error)) for error in (REPORTED, CERTAIN))
    return reported, certain, made


def _joined(fits: list[Guesses]) -> Guesses:
    return Guesses(np.concatenate([one.evidence for one in fits]), np.concatenate([one.coins for one in fits]))


def _worth_a_guess(practice: Guesses, more: float) -> float:
    """The least strength of evidence for a guess that promises the largest bound, with ``more`` times as many canaries."""
    strength = np.round(np.abs(practice.evidence), 9)
    right = (practice.evidence > 0) == practice.coins
    best, found = -1.0, 0.0
    for least in np.unique(strength[strength > 0]).tolist():
        guessed = right[strength >= least]
        share, made = (guessed.sum() + 1) / (len(guessed) + 2), len(guessed) * more
        bound = float(epsilon_of_guesses(share * made, made, PRUDENCE))
        if bound > best:
            best, found = bound, least - 1e-9
    return found
