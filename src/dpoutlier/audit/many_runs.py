"""Many fits on each of two neighbouring data sets, and what an attacker saw of every one."""

from collections.abc import Iterator
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.audit.configuration import Configuration
from dpoutlier.audit.events import LABELS, Seen
from dpoutlier.audit.evidence import log_ratio
from dpoutlier.audit.files import folder_in_memory, open_file
from dpoutlier.audit.scores import Questions, questions_for
from dpoutlier.audit.seeds import seed_of
from dpoutlier.audit.worlds import Changed, Worlds, worlds_of
from dpoutlier.counts.base import noisy_counts
from dpoutlier.detectors.fitted import HoldsModel
from dpoutlier.model.model import Model

COUNTS, SCORES, FILE = "counts", "scores", "file"


def observe(
    configuration: Configuration, channels: tuple[str, ...], world: int, first: int, runs: int, seed: int | None
) -> dict[str, Seen]:
    """Fit ``runs`` times on the data of one world, with fresh noise each time, and look through each channel.

    Runs are numbered from ``first``, so that with a seed the noise of each run can be drawn again.
    """
    attacker = _Attacker(configuration)
    data = attacker.worlds.tables[world]
    evidence = {channel: np.empty(runs) for channel in channels}
    labels = {channel: np.zeros((runs, len(LABELS)), np.int64) for channel in channels}
    mine = None if seed is None else seed_of(seed, repr(configuration), world)
    with folder_in_memory() as folder:
        path = Path(folder) / "model"
        for i in range(runs):
            own = None if mine is None else seed_of(mine, first + i)
            fitted = configuration.fit(data, own)
            for channel in channels:
                evidence[channel][i], labels[channel][i] = attacker.look(channel, fitted, path)
    return {channel: Seen(evidence[channel], labels[channel]) for channel in channels}


class _Attacker:
    """Knows all rows except one and the whole configuration, and makes the best use of what a channel shows."""

    def __init__(self, configuration: Configuration) -> None:
        self.worlds, self.changed, self.questions = _known(configuration)
        self.moves = configuration.estimates_cells

    def look(self, channel: str, fitted: HoldsModel, path: Path) -> tuple[float, tuple[int, int]]:
        """Evidence, and a label for the counts and for all else."""
        model: Model = fitted.model_
        changed = self.worlds.changed(model) if self.moves else self.changed
        estimated = hash((model.domain.lower, model.domain.upper, *_spent(model))) if self.moves else 0
        if channel == SCORES:
            questions = questions_for(self.worlds, model) if self.moves else self.questions
            scores = fitted.outlier_scores(questions.points)
            return questions.evidence(model, scores), (_label(scores), estimated)
        if channel == COUNTS:
            seen, rest = noisy_counts(model.counts, changed.ids), estimated
        else:
            opened = open_file(fitted.save(path, overwrite=True))
            seen, rest = opened.look_up(changed.ids), opened.rest
        return log_ratio(model, self.worlds, changed, seen), (_label(seen), rest)


def _spent(model: Model) -> Iterator[Fraction]:
    """What each part cost: it says how often a fit has looked where the rows lie."""
    return (charge.epsilon for charge in model.charges)


def _label(values: NDArray[Any]) -> int:
    """A label for the first of the values: all of them together would hardly ever come up twice."""
    return hash(float(values[0])) if len(values) else 0


@lru_cache(maxsize=4)
def _known(configuration: Configuration) -> tuple[Worlds, Changed, Questions]:
    worlds, model = worlds_of(configuration), configuration.model()
    return worlds, worlds.changed(model), questions_for(worlds, model)
