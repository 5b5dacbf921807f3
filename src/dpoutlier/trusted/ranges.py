"""Where the rows lie within the declared ranges: a window for each feature, or one for all of them together, by permute-and-flip.

docs/ranges.md says when a fit looks and what was chosen here; docs/privacy.md, "Finding ranges", proves what it costs.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features import windows
from dpoutlier.features.domain import Domain
from dpoutlier.model.looks import Kind, Look
from dpoutlier.model.plan import Plan
from dpoutlier.noise.permute_and_flip import permute_and_flip
from dpoutlier.noise.sources import ByteSource
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.members import MAX_MEMBER_CELLS
from dpoutlier.privacy.guarantee import Charge
from dpoutlier.trusted.queries import ReferenceQueries


@dataclass(frozen=True)
class Found:
    """Rows under the bounds that were found, and what it has cost."""

    rows: ReferenceQueries
    domain: Domain
    charges: tuple[Charge, ...] = ()
    share: Fraction = Fraction(0)
    """Of what was left for counts and looks."""


def find_ranges(rows: ReferenceQueries, domain: Domain, plan: Plan, n_rows: int | None, source: ByteSource) -> Found:
    """Look where the rows lie, if the plan says so. A second look depends on what the first one released, and on nothing else."""
    look = plan.first_look(n_rows)
    n_cells = sum((axis.levels or windows.CELLS * windows.FINER) + axis.missing for axis in domain.axes)
    if look is None or n_rows is None or n_cells > MAX_MEMBER_CELLS:
        return Found(rows, domain)
    counts = _cell_counts(rows, domain, plan)
    looks = [_Looked(counts, look, n_rows, plan, source)]
    if look.kind is Kind.TEST and any(looks[0].chosen):
        second = plan.second_look(n_rows)
        looks += [] if second is None else [_Looked(counts, second, n_rows, plan, source)]
    charges = tuple(one.paid for one in looks if one.paid is not None)
    share = sum((one.look.share for one in looks), Fraction(0))
    found = domain.narrowed(dict(zip(domain.loose, looks[-1].parts, strict=True)))
    return Found(rows if found is domain else rows.with_domain(found), found, charges, share)


def _cell_counts(rows: ReferenceQueries, domain: Domain, plan: Plan) -> NDArray[np.int64]:
    """How many rows lie in each part of a cell, for each feature with a declared range. Missing ones lie nowhere.

    They are counted as marginals are, by whatever holds the rows.
    """  # (P11)
    n_parts = windows.CELLS * windows.FINER
    margins = Margins.of(n_parts, domain.axes)
    exact = rows.counts(margins, plan.n_jobs)
    found = np.zeros(margins.n_cells, np.int64)
    found[exact.ids[:, 1].astype(np.int64)] = exact.counts
    return np.stack([found[margins.first[j] :][:n_parts] for j in domain.loose])


class _Looked:
    """A look at the rows: what was chosen, and what it costs."""

    def __init__(self, counts: NDArray[np.int64], look: Look, n_rows: int, plan: Plan, source: ByteSource) -> None:
        self.look = look
        self.paid = None if plan.guarantee.epsilon is None else plan.charge_for_look(look)
        # The rate for a unit of weight: a row adds at most ``UNIT`` of them to a window.
        self._rate = None if self.paid is None else self.paid.rate / windows.UNIT
        self._from = windows.eighths() if look.kind is Kind.TEST else windows.windows(look.strength)
        self._n_features = len(counts)
        held, limit = counts.sum(axis=0, keepdims=True), None
        if look.kind is Kind.EACH:
            held, limit = counts, max(math.ceil(n_rows * windows.MOST_ALIKE), 1)
        self.chosen = [self._choose(windows.by_cell(one, limit), source) for one in held]

    def _choose(self, counts: NDArray[np.int64], source: ByteSource) -> int:
        """The number of a window. Without noise nothing is private: the best, and of equals the widest."""  # (P11)
        useful = self._from.utilities(counts, self._rate)
        return int(np.argmax(useful)) if self._rate is None else permute_and_flip(useful, self._rate, source)

    @property
    def parts(self) -> list[tuple[Fraction, Fraction]]:
        """For each feature the part of its range that is left. A test narrows nothing."""
        chosen = [0] if self.look.kind is Kind.TEST else self.chosen
        each = [windows.widened(self._from, number) for number in chosen]
        return each if self.look.kind is Kind.EACH else each * self._n_features
