"""One fit: rows in, model out. Every read of the rows is charged; everything else is public."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.counts.dense import MAX_DENSE_CELLS
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.sparse import tau_for
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.domain import Domain
from dpoutlier.model import looks
from dpoutlier.model.model import Model
from dpoutlier.model.plan import Plan, charge_for
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.sources import ByteSource, byte_source
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import Charge, Purpose
from dpoutlier.privacy.receipt import Receipt
from dpoutlier.scoring.threshold import ScoreHistogram
from dpoutlier.trusted.counts import Counts
from dpoutlier.trusted.open import open_reference
from dpoutlier.trusted.quantiles import choose_quantiles, widened
from dpoutlier.trusted.queries import ReferenceQueries
from dpoutlier.trusted.ranges import find_ranges
from dpoutlier.trusted.release import release_dense, release_keyed, release_sparse, release_vector


def fit_model(reference: Any, plan: Plan) -> Model:
    """Fit on reference rows as planned. The rows are dropped on return."""
    source = byte_source(plan.unsafe_seed)
    # What is impossible is refused before any row is read: with a public number of rows the partition itself, else the least.
    partition = _partition(plan, 1 if plan.n_rows_hint == "estimate" else plan.n_rows_hint)
    receipt: Receipt | None = None

    def charge() -> None:
        nonlocal receipt
        receipt = plan.reserved()

    rows = open_reference(reference, plan, charge)
    count_paid, n_rows_hint = None, plan.n_rows_hint
    if n_rows_hint == "estimate":
        n_rows_hint, count_paid = _estimate_row_count(rows, plan, source)
        partition = _partition_for_estimate(plan, n_rows_hint)
    domain, bounds_paid = _choose_bounds(rows, plan, source)
    rows = rows.with_domain(domain) if plan.domain.estimated else rows
    found = find_ranges(rows, domain, plan, n_rows_hint, source)
    domain, rows = found.domain, found.rows
    exact = rows.counts(partition, plan.n_jobs)
    counts, paid = _release_counts(exact, partition, plan, found.share, source)
    model = Model(
        detector=plan.detector,
        domain=domain,
        partition=partition,
        scorer=plan.scorer.with_noise(None if paid is None else paid.rate),
        counts=counts,
        guarantee=plan.guarantee,
        charges=tuple(one for one in (count_paid, bounds_paid, *found.charges, paid) if one is not None),
        n_rows_hint=n_rows_hint,
        receipt=receipt,
    )
    return model if plan.target_fpr is None else _release_threshold(rows, model, plan, source)


def _partition(plan: Plan, n_rows_hint: int | None) -> Partition:
    partition = plan.make_partition(n_rows_hint, plan.epsilon_per_row)
    if plan.counts == "dense" and partition.n_cells > MAX_DENSE_CELLS:
        raise InvalidParameterError(
            f"counts='dense' takes at most {MAX_DENSE_CELLS:,} cells, and this partition has {float(partition.n_cells):.3g}. "
            "Use fewer bins or features, counts='sparse', or counts='keyed' (secret)."
        )
    # What cannot be drawn is refused here, not after the rows are read; looks may leave that little.
    _charge_for_counts(partition, plan, Fraction(0) if plan.tight_ranges else looks.MOST)
    return partition


def _partition_for_estimate(plan: Plan, n_rows_hint: int) -> Partition:
    """The same, but an error has a fixed text: the usual one would show numbers made from what was just estimated."""
    try:
        return _partition(plan, n_rows_hint)
    except InvalidParameterError:
        pass
    raise InvalidParameterError(
        "the automatic partition for the estimated number of rows is not possible with these arguments. 5 % of epsilon is spent, "
        "and no model was made. Give n_rows_hint as a public number, or give bins, n_trees and depth, or use a larger epsilon or "
        "counts='auto'."
    )


def _is_dense(partition: Partition, plan: Plan) -> bool:
    return plan.counts == "dense" or (plan.counts == "auto" and partition.n_cells <= MAX_DENSE_CELLS)


def _charge_for_counts(partition: Partition, plan: Plan, spent: Fraction) -> Charge | None:
    """After looks that cost the share ``spent`` of what was left. None if the counts get no noise: then they cost nothing."""
    cost = plan.cost_of_counts(spent)
    if cost is None:
        return None
    paid = charge_for(Purpose.COUNTS, cost, plan.guarantee.sensitivity(partition.cells_per_row))
    if not _is_dense(partition, plan) and not isinstance(paid.mechanism, DiscreteLaplace):
        raise InvalidParameterError(
            f"keyed and sparse counts have discrete Laplace noise, and delta={plan.guarantee.delta} asks for another. Leave delta "
            f"out, or use few enough cells for counts='dense' (at most {MAX_DENSE_CELLS:,})."
        )
    return paid


def _release_counts(
    exact: Counts, partition: Partition, plan: Plan, spent: Fraction, source: ByteSource
) -> tuple[NoisyCounts, Charge | None]:
    paid = _charge_for_counts(partition, plan, spent)
    if paid is None:
        return ExactCounts(exact.ids, exact.counts), None
    noise = paid.noise
    if _is_dense(partition, plan):
        return release_dense(exact, partition.n_cells, noise, source), paid
    assert isinstance(noise, DiscreteLaplace)
    if plan.counts == "sparse":
        tau = tau_for(partition.n_cells, noise, plan.sparse_size)
        return release_sparse(exact, partition.n_cells, noise, tau, source), paid
    return release_keyed(exact, noise, source), paid


def _release_small(exact: NDArray[np.int64], paid: Charge | None, source: ByteSource) -> NDArray[np.int64]:
    """Release a short vector in which a row counts once. Exact where nothing is private."""  # (P6)
    return exact if paid is None else release_vector(exact, paid.noise, source)


def _estimate_row_count(rows: ReferenceQueries, plan: Plan, source: ByteSource) -> tuple[int, Charge | None]:
    exact = np.array([rows.number_of_rows()], np.int64)
    paid = plan.charge_for_row_count()
    noisy = _release_small(exact, paid, source)
    return max(int(noisy[0]), 1), paid


def _choose_bounds(rows: ReferenceQueries, plan: Plan, source: ByteSource) -> tuple[Domain, Charge | None]:
    """The domain with bounds for the features that have none yet, and what they cost."""
    outer = {j: pair for j, pair in enumerate(plan.domain.outer or ()) if pair}
    if not outer:
        return plan.domain, None
    counts = rows.edge_counts(outer)
    paid = plan.charge_for_bounds()
    pairs = choose_quantiles(counts, None if paid is None else paid.rate, source)
    bounds = {j: widened(*pair, outer[j]) for j, pair in zip(outer, pairs, strict=True)}
    return plan.domain.with_bounds(bounds), paid


def _release_threshold(rows: ReferenceQueries, model: Model, plan: Plan, source: ByteSource) -> Model:
    """Histogram of the rows' scores under the model as released: a row counts in one bin, whatever the detector."""
    assert plan.target_fpr is not None
    paid = plan.charge_for_threshold()
    noise = None if paid is None else paid.noise
    levels = model.levels(noise)
    exact = rows.score_counts(model, levels, plan.n_jobs)
    histogram = ScoreHistogram(
        levels,
        _release_small(exact, paid, source),
        noise,
        plan.target_fpr,
        continuous=model.scorer.continuous(model.partition),
        left_out=True,
        outlier_share=plan.outlier_share,
    )
    charges = model.charges if paid is None else (*model.charges, paid)
    return replace(model, charges=charges, score_histogram=histogram).with_target_fpr(plan.target_fpr)
