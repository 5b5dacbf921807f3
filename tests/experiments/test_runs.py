"""Runs of the six algorithms: shortcuts against the library itself, controls, noise, and the choice of k and b."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpoutlier import DPGridKNN, GridKNN
from dpoutlier.exceptions import UnsafeWarning
from experiments.measure.choice import choose_bins, choose_k
from experiments.measure.protocol import seed_of, split_rows
from experiments.measure.quality import quality
from experiments.measure.rows import Row, rows_of_table, table_of_rows
from experiments.measure.runs import run_exact, run_plain, run_private
from experiments.measure.study import FULL, QUICK, Task
from experiments.measure.variants import VARIANTS, scores_if, variant_named, variants_from
from made_data import made

DEPTHS = {"limited": (4, 4), "endless": (None, None)}
"""Depths of walks without and with noise, if they are not (None, 4)."""
PRIVATE = (
    "base",
    "endless",
    "point",
    "scaled",
    "ranged",
    "text",
    "right-scale",
    "declared",
    "declared-point",
    "public",
)


def _case(variant, split=0, name="heart"):
    """Data, split, and the bounds that the variant must use, worked out here."""
    data = made(name)
    parts = split_rows(data, split)
    rows = data.rows if variant in {"declared", "declared-point", "public"} else parts.reference
    low, high = rows.min(axis=0), rows.max(axis=0)
    if rows is data.rows:
        return data, parts, (low - 0.1 * (high - low), high + 0.1 * (high - low))
    if variant == "ranged":
        return data, parts, (low, high)
    mean = rows.mean(axis=0)
    reach = abs(rows - (0 if variant in {"scaled", "text"} else mean)).max(axis=0)
    return data, parts, (mean - reach, mean + reach)


@pytest.mark.parametrize("bins", [2, 5, 17])
@pytest.mark.parametrize("name", ["base", "limited", "point", "scaled", "ranged", "text"])
def test_exact_rows_are_what_the_library_gives_for_every_k(name, bins):
    data, split, bounds = _case(name)
    rows = run_exact(Task("exact", name, "heart", 0, (1, 3, 60), bins), data)
    assert len(rows) == 12
    for row in rows:
        twin = GridKNN(
            bounds,
            k=row.k,
            bins=bins,
            weighted=row.algorithm == "Grid-w",
            distance="point" if name in {"point", "text"} else "cell",
            exhausted="as-printed",
            max_depth=DEPTHS.get(name, (None, 4))[0],
        ).fit(split.reference[:0] if row.control else split.reference)
        walks = twin.walk(split.points)
        assert (row.auroc, row.ap, row.p_at_n) == quality(split.outlying, walks.scores)
        assert row.ran_out == np.mean(walks.status > 0)


@pytest.mark.parametrize("name", PRIVATE)
@pytest.mark.parametrize(
    ("dataset", "number", "control"), [("heart", 0, False), ("heart", 0, True), ("pima", 1, False)]
)
def test_private_rows_are_what_the_library_gives(name, dataset, number, control):
    """Noise, relation, bounds, depth and rule of each variant, spelled out."""
    data, split, bounds = _case(name, number, dataset)
    bins = None if name == "public" else 4
    rows = run_private(Task("private", name, dataset, number, (10,), bins, (1.25,), 2, control=control), data)
    shared = {"base": ["far", "penalty"], "ranged": ["ranged-penalty"]}.get(name, [])
    assert {row.variant for row in rows} == {name, *shared}
    assert len(rows) == 4 * (1 + len(shared))
    for row in rows:
        detector = _spelled_out(row, name, bounds, bins, len(split.reference))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsafeWarning)
            detector.fit(split.reference[:0] if control else split.reference)
        walks = detector.walk(split.points)
        scores = (
            walks.scores
            if row.variant not in {"penalty", "ranged-penalty"}
            else np.where(walks.status > 0, 2, walks.scores)
        )
        assert (row.auroc, row.ap, row.p_at_n) == pytest.approx(quality(split.outlying, scores), abs=1e-12)
        assert row.control is control


def _spelled_out(row, name, bounds, bins, n):
    as_printed = name not in {"right-scale", "declared", "declared-point", "public"}
    depth = DEPTHS.get(name, (None, 4))[1]
    return DPGridKNN(
        1.25,
        features=bounds,
        bins="auto" if bins is None else bins,
        n_rows_hint=n,
        k=10,
        weighted=row.algorithm == "DP Grid-w",
        neighbours="add-or-remove-one" if as_printed else "replace-one",
        distance="point" if name in {"point", "text", "declared-point"} else "cell",
        exhausted="outlying" if row.variant == "far" or not as_printed else "as-printed",
        counts="keyed",
        max_depth=depth,
        max_cells=10**5 if depth is None else 10**6,
        unsafe_seed=seed_of(row.dataset, row.split, bins, 1.25, row.seed),
    )


@settings(max_examples=25)
@given(st.integers(2, 12), st.integers(1, 80), st.booleans(), st.sampled_from([5, 0.3, 0.015]))
def test_another_rule_from_a_walk_as_printed_is_that_rule(bins, k, weighted, epsilon):
    _, split, bounds = _case("base")
    walks = {}
    for exhausted in ("as-printed", "outlying"):
        detector = DPGridKNN(
            epsilon,
            features=bounds,
            bins=bins,
            k=k,
            weighted=weighted,
            exhausted=exhausted,
            counts="keyed",
            unsafe_seed=3,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnsafeWarning)
            walks[exhausted] = detector.fit(split.reference).walk(split.points)
    printed = walks["as-printed"]
    far = scores_if("outlying", printed, k, 2, weighted=weighted)
    assert far == pytest.approx(walks["outlying"].scores, rel=1e-9, abs=1e-9)
    penalty = scores_if("penalty", printed, k, 2, weighted=weighted)
    assert penalty.tolist() == np.where(printed.status > 0, 2.0, printed.scores).tolist()


def test_the_control_meets_the_same_noise():
    """At a tiny epsilon noise is all there is, and runs with and without rows agree; at a large one they do not."""
    data = made("pima")
    for epsilon, agree in ((0.001, True), (5, False)):
        task = Task("private", "declared", "pima", 0, (3,), 3, (epsilon,), 2)
        found, control = (run_private(replace(task, control=without), data) for without in (False, True))
        assert ([row[-4:] for row in found] == [row[-4:] for row in control]) is agree


def test_plain_rows_have_a_control_that_knows_nothing():
    rows = run_plain(Task("plain", "base", "pima", 0, (3, 5)), made("pima"))
    assert [(row.algorithm, row.k, row.control) for row in rows[:4]] == [
        ("kNN", 3, False), ("kNN", 3, True), ("wkNN", 3, False), ("wkNN", 3, True),
    ]  # fmt: skip
    assert {row.auroc for row in rows if row.control} == {0.5}
    assert min(row.auroc for row in rows if not row.control) > 0.6


def test_only_the_last_variants_keep_every_promise():
    """What the report says of each variant is how it is run."""
    declared = ["declared", "declared-point", "public"]
    assert [variant.name for variant in VARIANTS if not variant.leaked_bounds] == declared
    assert [variant.name for variant in VARIANTS if variant.neighbours == "replace-one"] == ["right-scale", *declared]
    assert [variant.name for variant in VARIANTS if variant.k is not None] == ["public"]


def test_what_a_variant_shares_it_would_run_alike():
    """Else a reading would be judged by runs of another one."""
    for variant in VARIANTS:
        for part, other in variant.shared._asdict().items():
            if not other:
                continue
            one = variant_named(other)
            if part in {"exact", "private"}:
                assert (variant.bounds, variant.distance) == (one.bounds, one.distance)
            if part == "exact":
                assert variant.exact_depth == one.exact_depth
            if part == "private":
                assert (variant.private_depth, variant.neighbours) == (one.private_depth, one.neighbours)
                assert variant.exhausted == one.exhausted or variant in variants_from(other)
            if part == "plain":
                assert (variant.bounds, one.bounds) in {
                    ("centre-first", "centre-first"),
                    ("range", "centre-first"),  # another grid in the same space
                    ("as-printed", "as-printed"),
                    ("declared", "declared"),
                }


def test_the_study_is_the_paper_s():
    """Section 5.2: five sets, b from 2 to 10, nine epsilons, ten seeds; and k, splits as decided."""
    assert len(FULL.sets) == 5
    assert FULL.bins == tuple(range(2, 11))
    assert FULL.epsilons == (5, 2.5, 1.25, 0.6, 0.3, 0.15, 0.075, 0.035, 0.015)
    assert (FULL.seeds, FULL.splits, FULL.ks, FULL.sweep_epsilon) == (10, 5, (3, 10, 30, 60), 1.25)
    assert (QUICK.sets, QUICK.epsilons, QUICK.ks) == (FULL.sets, FULL.epsilons, FULL.ks)


def _row(**what):
    base = Row("heart", "base", "Grid", False, 3, 2, None, 0, None, 0.0, 0.5, 0.5, 0.5)
    return base._replace(**what)


def test_k_is_the_smallest_with_the_best_mean_over_splits_at_its_best_b():
    rows = [
        _row(k=3, bins=2, split=0, auroc=0.9), _row(k=3, bins=2, split=1, auroc=0.5),
        _row(k=10, bins=5, split=0, auroc=0.8), _row(k=10, bins=5, split=1, auroc=0.7),
        _row(k=10, bins=2, split=0, auroc=0.1), _row(k=10, bins=2, split=1, auroc=0.1),
        _row(k=30, algorithm="Grid-w", bins=2, split=0, auroc=0.75), _row(k=30, algorithm="Grid-w", bins=2, split=1, auroc=0.75),
        _row(k=60, auroc=1.0, control=True), _row(k=60, auroc=1.0, variant="far"),
        _row(k=60, auroc=1.0, algorithm="DP Grid", epsilon=1.25),
    ]  # fmt: skip
    assert choose_k(rows, "base") == {"heart": 10}
    plain = [
        _row(k=k, bins=None, algorithm=name, auroc=auroc) for k, name, auroc in ((3, "kNN", 0.6), (60, "wkNN", 0.7))
    ]
    assert choose_k([*rows, *plain], "base", ("kNN", "wkNN")) == {"heart": 60}
    assert choose_k([*rows, *plain], "base") == {"heart": 10}


def test_b_is_the_smallest_with_the_best_mean_at_the_epsilon_of_the_sweep():
    noisy = {"algorithm": "DP Grid", "epsilon": 1.25}
    rows = [
        _row(bins=2, auroc=0.7, **noisy), _row(bins=3, auroc=0.8, **noisy), _row(bins=4, auroc=0.80049, **noisy),
        _row(bins=5, auroc=0.9, **{**noisy, "epsilon": 5}), _row(bins=6, auroc=0.9, k=10, **noisy),
        _row(bins=7, auroc=0.9, control=True, **noisy),
    ]  # fmt: skip
    assert choose_bins(rows, "base", 1.25, {"heart": 3}) == {"heart": 3}
    assert choose_bins(rows, "base", 5, {"heart": 3}) == {"heart": 5}


def test_a_weighted_grid_may_decide():
    rows = [_row(k=3, auroc=0.6), _row(k=10, auroc=0.5), _row(k=10, algorithm="Grid-w", auroc=0.7)]
    assert choose_k(rows, "base") == {"heart": 10}
    noisy = [row._replace(algorithm=f"DP {row.algorithm}", epsilon=1.25, k=3, bins=row.k) for row in rows]
    assert choose_bins(noisy, "base", 1.25, {"heart": 3}) == {"heart": 10}


def test_rows_and_tables_are_the_same_thing():
    rows = [_row(), _row(bins=None, epsilon=0.15, seed=7, control=True)]
    assert rows_of_table(table_of_rows(rows, Row), Row) == rows
    assert table_of_rows([], Row).num_rows == 0
