"""The door out of the trusted zone, watched: what goes in and what comes out, release by release.

A first run records what was released. A second run, on neighbouring rows, is given the same releases again. By the theorem on
composition this is all that the proof needs: given equal earlier releases, what goes into the next one differs by no more than it
is charged for; and given equal releases, everything else is equal.
"""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpoutlier.trusted import fit
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.quantiles import EdgeCounts

__all__ = ["Passed", "distance", "watched"]

NAMES = ("release_dense", "release_keyed", "release_sparse", "release_vector", "choose_quantiles", "ExactCounts")
"""What ``trusted.fit`` calls for each release; exact counts are those of the twins, which promise nothing."""


class Passed(NamedTuple):
    """One release."""

    door: str
    purpose: str
    sensitivity: int
    """The largest change that is charged for, in rows; for bounds, in rows of each feature."""
    exact: Any
    """What went in: private."""
    released: Any


@contextmanager
def watched(again: list[Passed] | None = None):
    """A list that collects what passes the door; with ``again`` the releases of an earlier run come out instead."""
    found: list[Passed] = []
    charged: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        make = fit.charge_for

        def charge_for(purpose, cost, sensitivity):
            charged.append((purpose, sensitivity.l1))
            return make(purpose, cost, sensitivity)

        choose = fit._choose_bounds

        def choosing(rows, plan, source):
            charged.append(("bounds", plan.guarantee.sensitivity().l1))  # a row is counted once for each feature
            return choose(rows, plan, source)

        patch.setattr(fit, "charge_for", charge_for)
        patch.setattr(fit, "_choose_bounds", choosing)
        for name in NAMES:
            patch.setattr(fit, name, _door(name, getattr(fit, name), found, charged, again))
        yield found


def _door(name, real, found, charged, again):
    def door(*given, **named):
        exact = given if name == "ExactCounts" else given[0]
        released = real(*given, **named)
        purpose, sensitivity = charged[-1] if charged else ("nothing", 0)
        if again is not None:
            assert len(found) < len(again), f"on neighbouring rows there is a release more: {name}"
            before = again[len(found)]
            assert before.door == name, f"on neighbouring rows {name} is called where it was {before.door}"
            # The law is this run's own, and equal: else copies of it would be told apart in pickles.
            keyed = name == "release_keyed"
            released = replace(before.released, law=released.law) if keyed else before.released
        found.append(Passed(name, purpose, sensitivity, exact, released))
        return released

    return door


def distance(one: Any, other: Any) -> int:
    """How much two private inputs of the door differ: in L1, and of edge counts in the worst feature."""
    if isinstance(one, EdgeCounts):
        features = range(len(one.outer))
        return max(int(np.abs(one.between(j) - other.between(j)).sum()) for j in features)
    if isinstance(one, np.ndarray):
        return int(np.abs(one - other).sum())
    ids, counts = zip(*[(x.ids, x.counts) if isinstance(x, Counts) else x for x in (one, other)], strict=True)
    tables = [
        {tuple(cell): int(n) for cell, n in zip(cells.tolist(), own.tolist(), strict=True)}
        for cells, own in zip(ids, counts, strict=True)
    ]
    cells = tables[0].keys() | tables[1].keys()
    return sum(abs(tables[0].get(cell, 0) - tables[1].get(cell, 0)) for cell in cells)
