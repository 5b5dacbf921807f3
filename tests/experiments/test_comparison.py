"""All detectors side by side: what is run, and what tables and figures say of it."""

import warnings
from collections import defaultdict
from dataclasses import replace
from itertools import product
from statistics import fmean

import numpy as np
import pytest
from scipy.stats import friedmanchisquare, rankdata, wilcoxon

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals
from experiments.measure.comparison import (
    DETECTORS,
    EXACT,
    GRID_TWIN,
    SYNTHETIC,
    Case,
    guessed_rows,
    private_rows,
    run_comparison,
)
from experiments.measure.datasets import DATASETS
from experiments.measure.protocol import bounds_widened, seed_of, split_rows
from experiments.measure.quality import METRICS, quality
from experiments.measure.sources import load_dataset
from experiments.measure.synthetic import Binned, sample_by_marginals, sample_by_tree
from experiments.report.comparison import PRIVATE, SHOWN, Comparison, compared_table, leads_table, sets_table
from experiments.report.comparison_answer import compared_lines, detectors_answer
from experiments.report.comparison_figures import CONTROLS, LOOKS, _alike
from experiments.report.figures import draw_comparison
from experiments.report.wording import decimals
from made_data import TINY, made
from numbered import compared_number, numbered_comparison
from shared_data import needs_data

pytestmark = pytest.mark.slow  # whole experiments, if small ones

SETS = (*TINY.sets, *TINY.tables)


@pytest.fixture(scope="module")
def apart():
    """In which every number is another one."""
    return Comparison(TINY, numbered_comparison())


@pytest.fixture(scope="module")
def rows():
    return run_comparison("heart", 1, (5, 0.3), 2, made("heart"))


def test_every_method_is_run_with_its_control_at_each_epsilon_and_seed(rows):
    expected = {(name, False, None, None) for name in EXACT} | {(GRID_TWIN, False, e, None) for e in (5.0, 0.3)}
    for epsilon, seed in product((5.0, 0.3), (0, 1)):
        expected |= {(name, control, epsilon, seed) for name in DETECTORS for control in (False, True)}
        expected |= {(name, False, epsilon, seed) for name in SYNTHETIC}
    found = [(row.method, row.control, row.epsilon, row.seed) for row in rows]
    assert len(found) == len(set(found))
    assert set(found) == expected
    assert {(row.dataset, row.split) for row in rows} == {("heart", 1)}
    assert all(0 <= getattr(row, metric) <= 1 for row in rows for metric in METRICS)


def test_each_row_is_what_its_name_says(rows):
    """Every method again, from its class, on the rows that it should have seen or on none."""
    split, bounds = split_rows(made("heart"), 1), bounds_widened(made("heart").rows)
    n_rows_hint, reference = guessed_rows(len(split.reference)), split.reference
    low, high = np.array(bounds.lower), np.array(bounds.upper)
    unit = lambda X: (X - low) / (high - low)  # noqa: E731

    def scores(row):
        seed = (
            None
            if row.seed is None
            else seed_of("comparison", "heart", 1, {5.0: 5}.get(row.epsilon, row.epsilon), row.seed)
        )
        common = {"features": bounds, "unsafe_seed": seed}
        seen = reference[:0] if row.control else reference
        match row.method:
            case "KNN":
                return KNN(bounds, k=10).fit(seen)
            case "Forest":
                return Forest(bounds).fit(seen)
            case "Marginals":
                return Marginals(bounds).fit(seen)
            case "GridKNN":
                bins = (
                    DPGridKNN(row.epsilon, features=bounds, n_rows_hint=n_rows_hint)
                    .fit(reference[:0])
                    .model_.partition.bins
                )
                return GridKNN(bounds, bins=bins, k=10).fit(seen)
            case "DPForest" | "default":
                return DPForest(row.epsilon, n_rows_hint=n_rows_hint, tree_seed=seed, **common).fit(seen)
            case "DPMarginals":
                return DPMarginals(row.epsilon, n_rows_hint=n_rows_hint, **common).fit(seen)
            case "DPGridKNN":
                return DPGridKNN(row.epsilon, n_rows_hint=n_rows_hint, k=10, max_cells=1000, **common).fit(seen)

    for row in rows:
        if row.method in SYNTHETIC:
            sample = sample_by_tree if row.method == "synthetic, tree" else sample_by_marginals
            seed = seed_of(row.method, "heart", 1, {5.0: 5}.get(row.epsilon, row.epsilon), row.seed)
            made_up = sample(Binned.of(unit(reference)), row.epsilon, n_rows_hint, np.random.default_rng(seed))
            found = KNN((0.0, 1.0), k=10).fit(made_up).outlier_scores(unit(split.points))
        else:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = scores(row).outlier_scores(split.points)
        assert quality(split.outlying, found) == row[-3:]


def test_runs_repeat_and_seeds_differ(rows):
    assert run_comparison("heart", 1, (5, 0.3), 2, made("heart")) == rows
    for name in DETECTORS:
        values = {row.auroc for row in rows if row.method == name and not row.control and row.epsilon == 0.3}
        assert len(values) == 2


def test_the_default_is_what_the_library_chooses(rows):
    values = {
        name: [row[3:] for row in rows if row.method == name and not row.control] for name in ("default", "DPForest")
    }
    assert values["default"] == values["DPForest"]


@pytest.mark.parametrize(
    ("n", "guess"), [(1, 1), (9, 9), (95, 100), (113, 100), (151, 200), (19_776, 20_000), (3952, 4000)]
)
def test_rows_are_guessed_to_one_digit(n, guess):
    assert guessed_rows(n) == guess


def _number(dataset, method, epsilon, metric="auroc", *, control=False):
    epsilon = None if method in EXACT else float(epsilon)
    return compared_number(dataset, method, metric, control=control, epsilon=epsilon)


def test_means_over_splits_seeds_and_sets(apart):
    for method, epsilon, metric in product(SHOWN, TINY.compared_epsilons, METRICS):
        expected = [_number(name, method, epsilon, metric) for name in SETS]
        assert apart.of_set(SETS[2], method, epsilon, metric=metric) == pytest.approx(expected[2])
        assert apart.mean(SETS, method, epsilon, metric=metric) == pytest.approx(fmean(expected))


def test_the_table_has_each_mean(apart):
    groups = {"the paper's sets": TINY.sets, "other tables": TINY.tables}
    records = compared_table(apart).to_pylist()
    assert len(records) == 2 * (4 * (2 * len(DETECTORS) + len(SYNTHETIC) + 1) + len(EXACT))
    for record in records:
        for metric in METRICS:
            expected = [
                _number(name, record["method"], record["epsilon"], metric, control=record["control"])
                for name in groups[record["sets"]]
            ]
            assert record[metric] == pytest.approx(fmean(expected))
    for record in sets_table(apart).to_pylist():
        for method in SHOWN:
            assert record[method] == pytest.approx(_number(record["dataset"], method, record["epsilon"]))


def test_ranks_and_tests_are_scipys(apart):
    scores = np.array([[_number(name, method, 0.3) for method in PRIVATE] for name in SETS])
    ranks = dict(zip(PRIVATE, rankdata(-scores, axis=1).mean(axis=0)))
    assert apart.ranks(0.3) == pytest.approx(ranks)
    assert apart.friedman(0.3) == pytest.approx(friedmanchisquare(*scores.T).pvalue)
    best = min(ranks, key=ranks.__getitem__)
    for record in leads_table(apart).to_pylist():
        if record["epsilon"] == 0.3:
            lead = scores[:, PRIVATE.index(best)] - scores[:, PRIVATE.index(record["method"])]
            assert record["best"] == best
            assert record["mean_rank"] == pytest.approx(ranks[record["method"]])
            assert record["lead_of_best"] == pytest.approx(lead.mean())
            assert record["p_wilcoxon"] == pytest.approx(wilcoxon(lead).pvalue if lead.any() else 1.0)
    over_all = np.mean([[[_number(s, m, e) for m in PRIVATE] for s in SETS] for e in TINY.compared_epsilons], axis=0)
    assert apart.ranks(None) == pytest.approx(dict(zip(PRIVATE, rankdata(-over_all, axis=1).mean(axis=0))))


def test_the_critical_difference_is_demsars():
    """Table 5 of Demšar (2006): q = 2.728 for five methods at 5 %."""
    study = replace(TINY, sets=tuple("abcdefghij"), tables=())
    assert len(PRIVATE) == 5
    assert Comparison(study, []).critical_difference == pytest.approx(2.728 * (5 * 6 / (6 * 10)) ** 0.5, abs=1e-3)


def test_methods_within_the_critical_difference_are_joined():
    assert _alike([1.0, 1.5, 3.0, 3.2, 5.0], 1.0) == [(1.0, 1.5), (3.0, 3.2)]
    assert _alike([1.0, 1.8, 2.6], 1.0) == [(1.0, 1.8), (1.8, 2.6)]
    assert _alike([1.0, 1.4, 1.8], 1.0) == [(1.0, 1.8)]
    assert _alike([1.0, 3.0], 1.0) == []


def test_curves_are_what_the_legend_says(apart):
    figure = draw_comparison(apart)[0].figure
    panels = figure.axes
    assert [axes.get_title(loc="left") for axes in panels] == ["5 sets: the paper's sets", "1 set: other tables"]
    for axes, sets in zip(panels, (TINY.sets, TINY.tables)):
        curves = {(line.get_color(), line.get_linestyle(), line.get_marker()): line for line in axes.lines}
        for control, looks in ((False, LOOKS), (True, CONTROLS)):
            for method, look in looks.items():
                expected = [fmean(_number(s, method, e, control=control) for s in sets) for e in TINY.compared_epsilons]
                line = curves[look.colour, look.dashes, look.marker or "None"]
                np.testing.assert_allclose(line.get_ydata(), expected)
                assert list(line.get_xdata()) == list(TINY.compared_epsilons)
        levels = [line.get_ydata()[0] for line in axes.lines if len(line.get_xdata()) == 2]
        np.testing.assert_allclose(levels, [fmean(_number(s, name, None) for s in sets) for name in ("KNN", "Forest")])


def test_the_ranks_figure_names_each_method_with_its_rank(apart):
    figure = draw_comparison(apart)[1].figure
    assert len(figure.axes) == len(TINY.compared_epsilons) + 1
    for axes, epsilon in zip(figure.axes, (*TINY.compared_epsilons, None)):
        texts = {text.get_text() for text in axes.texts}
        assert {f"{method} {rank:.2f}" for method, rank in apart.ranks(epsilon).items()} <= texts
        marks = sorted(float(line.get_xdata()[0]) for line in axes.lines)
        assert marks == pytest.approx(sorted(apart.ranks(epsilon).values()))


def test_the_answer_and_the_lines_of_the_page(apart):
    answer = detectors_answer(apart)
    assert answer.columns == ("", "5", "1.25", "0.3", "0.075")
    for line, (method, control) in zip(
        answer.lines, (("default", False), ("default", True), ("DPGridKNN", False), ("KNN", False)), strict=True
    ):
        expected = [fmean(_number(s, method, e, control=control) for s in SETS) for e in TINY.compared_epsilons]
        assert line[1:] == tuple(map(decimals, expected))
    lines = {line["method"]: line for line in compared_lines(apart)}
    expected = [fmean(_number(s, "DPMarginals", e) for s in TINY.sets) for e in TINY.compared_epsilons]
    assert lines["DPMarginals"]["the paper's sets"] == " / ".join(map(decimals, expected))
    assert lines["k-NN, not private"]["other tables"] == decimals(_number("wine-0", "KNN", None))
    assert len(lines) == len(SHOWN) + len(DETECTORS)


def test_on_one_set_there_is_nothing_to_test(tiny_results):
    study = replace(TINY, sets=("heart",), tables=())
    comparison = Comparison(study, [row for row in tiny_results.comparison if row.dataset == "heart"])
    assert np.isnan(comparison.friedman(0.3))
    assert comparison.groups == {"the paper's sets": ("heart",)}
    assert len(draw_comparison(comparison)) == 2
    assert leads_table(comparison).num_rows == 5 * len(PRIVATE)


def test_the_study_as_a_whole_has_the_comparison(tiny_results):
    assert {row.dataset for row in tiny_results.comparison} == set(SETS)
    assert {row.split for row in tiny_results.comparison} == {0, 1}
    assert len(set(tiny_results.comparison)) == len(tiny_results.comparison)


WANTED = {"DPForest": (0.785, 0.765, 0.73, 0.665), "DPMarginals": (0.79, 0.78, 0.73, 0.62)}
"""Mean AUROC over the paper's five sets at epsilon 5, 1.25, .3 and .075."""


@needs_data
def test_forest_and_marginals_find_what_they_should(data):
    """Declared bounds, nothing tuned, 5 splits x 10 seeds, all of them fixed; the controls find nothing."""
    epsilons, found = (5, 1.25, 0.3, 0.075), defaultdict(list)
    makers = {name: DETECTORS[name] for name in WANTED}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # seeded
        for dataset, split in product(DATASETS, range(5)):
            for row in private_rows(Case(dataset.name, split, load_dataset(dataset, data)), epsilons, 10, makers):
                found[row.method, row.control, row.epsilon].append((dataset.name, row.auroc))
    for (method, control, epsilon), values in found.items():
        by_set = [fmean(auroc for name, auroc in values if name == dataset.name) for dataset in DATASETS]
        if control:
            assert abs(fmean(by_set) - 0.5) < 0.02
        else:
            assert fmean(by_set) >= WANTED[method][epsilons.index(epsilon)]
    assert len(found) == 16
