"""Every release of a fit, recorded and replayed: what goes into it, what comes out, and what it is charged for.

A first run records what was released. A second run, on neighbouring rows, is given the same releases again. By the theorem on
composition this is all that the proof needs: given equal earlier releases, what goes into the next one differs by no more than it
is charged for; and given equal releases, everything else is equal.
"""

from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpoutlier.model.looks import Kind
from dpoutlier.trusted import fit, ranges
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.quantiles import EdgeCounts

FUNCTIONS = ("release_dense", "release_keyed", "release_sparse", "release_vector", "choose_quantiles", "ExactCounts")
"""What ``trusted.fit`` calls for each release; exact counts are those of the twins, which promise nothing."""


class Release(NamedTuple):
    """One release."""

    function: str
    purpose: str
    sensitivity: int
    """The largest change that is charged for, in rows; for bounds, in rows of each feature."""
    exact: Any
    """What went in: private."""
    released: Any


@contextmanager
def recorded_releases(earlier: list[Release] | None = None):
    """A list that collects all releases; with ``earlier`` the releases of an earlier run come out instead."""
    found: list[Release] = []
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
        for name in FUNCTIONS:
            patch.setattr(fit, name, _recording(name, getattr(fit, name), found, charged, earlier))
        patch.setattr(ranges._Looked, "_choose", _recording_choices(found, charged, earlier))
        yield found


def _recording_choices(found, charged, earlier):
    """The same for each choice of a window: a row counts once in it, or once for each feature where it is for all of them."""
    choose = ranges._Looked._choose
    record = _recording(
        "choose a window", lambda counts, looked, source: choose(looked, counts, source), found, charged, earlier
    )

    def choosing(looked, counts, source):
        if looked.paid is None:
            return choose(looked, counts, source)
        each = looked._n_features if looked.look.kind is Kind.EACH else 1
        charged.append(("ranges", looked.paid.sensitivity.l1 // each))
        return record(counts, looked, source)

    return choosing


def _recording(name, real, found, charged, earlier):
    """The function ``name`` of ``trusted.fit``, whose calls are added to ``found``."""

    def call(*given, **named):
        exact = given if name == "ExactCounts" else given[0]
        released = real(*given, **named)
        purpose, sensitivity = charged[-1] if charged else ("nothing", 0)
        if earlier is not None:
            assert len(found) < len(earlier), f"on neighbouring rows there is a release more: {name}"
            before = earlier[len(found)]
            assert before.function == name, f"on neighbouring rows {name} is called where it was {before.function}"
            # The law is this run's own, and equal: otherwise pickles would show which of the two objects it is.
            keyed = name == "release_keyed"
            released = replace(before.released, noise=released.noise) if keyed else before.released
        found.append(Release(name, purpose, sensitivity, exact, released))
        return released

    return call


def distance(one: Any, other: Any) -> int:
    """How much the private inputs of two releases differ: in L1, and for edge counts in the worst feature."""
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
