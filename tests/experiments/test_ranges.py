"""Ranges that are declared too wide: how they are made, what is run under them, and what table and figure say of it."""

from itertools import product
from statistics import fmean

import numpy as np
import pytest

from dpoutlier import Bounds
from experiments.measure.comparison import SYNTHETIC, Case, guessed_rows
from experiments.measure.protocol import bounds_widened, nothing_private, seed_of
from experiments.measure.quality import quality
from experiments.measure.ranges import (
    AS_DECLARED,
    CASES,
    FREE,
    METHODS,
    TIGHT,
    Declared,
    declared_bounds,
    free_bounds,
    run_ranges,
)
from experiments.report.comparison_figures import CONTROLS, PLAIN
from experiments.report.figures import draw_ranges
from experiments.report.ranges import GROUPS, SHOWN, Ranges, ranged_lines, ranges_table
from experiments.report.ranges_figure import CURVES, DECLARED
from experiments.report.wording import decimals
from made_data import TINY, made
from numbered import numbered_ranges, ranged_number

ROWS = np.array([[0.0, 10.0], [1.0, 30.0]])
SETS = (*TINY.sets, *TINY.tables)


@pytest.fixture(scope="module")
def apart():
    """In which every number is another one."""
    return Ranges(TINY, numbered_ranges())


@pytest.mark.parametrize(
    ("case", "lower", "upper"),
    [
        (Declared(TIGHT, "middle"), [-0.1, 8], [1.1, 32]),
        (Declared(10.0, "low"), [-0.1, 8], [9.9, 208]),
        (Declared(10.0, "high"), [-8.9, -168], [1.1, 32]),
        (Declared(10.0, "middle"), [-4.5, -80], [5.5, 120]),
    ],
)
def test_ranges_are_so_many_times_the_file_s(case, lower, upper):
    found = declared_bounds("heart", ROWS, case)
    np.testing.assert_allclose([found.lower, found.upper], [lower, upper])


@pytest.mark.parametrize("data", ["low", "anywhere"])
def test_factors_of_features_follow_from_the_name_and_hold_the_usual_range(data):
    rows = np.tile([[0.0], [1.0]], 500)
    found, other = (declared_bounds(name, rows, Declared(None, data)) for name in ("heart", "wdbc"))
    widths = np.subtract(found.upper, found.lower)
    assert (np.array(found.lower) <= -0.1).all()
    assert (np.array(found.upper) >= 1.1).all()
    assert (np.array(found.lower) == -0.1).all() == (data == "low")
    assert np.quantile(widths, [0, 0.25, 0.5, 0.75, 1]) == pytest.approx([1.2, 5.6, 31.6, 178, 1000], rel=0.2)
    assert not np.array_equal(widths, np.subtract(other.upper, other.lower))


def test_free_ranges_are_the_outer_fences_within_what_is_declared():
    """The last feature has equal quartiles: its range stays."""
    column = np.arange(101.0)
    reference = np.stack([column, column, np.where(column == 0, 1.0, 0.0)], axis=1)
    found = free_bounds(reference, Bounds([-1000, -10, -5], [1000, 1000, 5]))
    np.testing.assert_allclose([found.lower, found.upper], [[-125, -10, -5], [225, 225, 5]])


def test_every_method_is_run_in_each_case_as_its_name_says():
    rows = run_ranges("heart", 1, (1, 0.3), 1, made("heart"))
    private = [(name, control) for name in (*METHODS, FREE) for control in (False, True)]
    private += [(name, False) for name in SYNTHETIC]
    expected = [(*case, *one, epsilon) for case, one, epsilon in product(CASES, private, (1.0, 0.3))]
    expected.append((*CASES[0], "KNN", False, None))
    assert sorted(map(repr, expected)) == sorted(
        repr((row.factor, row.data, row.method, row.control, row.epsilon)) for row in rows
    )
    looked, as_declared = (
        {row[:2]: row for row in rows if (row.method, row.control, row.epsilon) == (method, False, 1.0)}
        for method in ("DPForest", AS_DECLARED.format("DPForest"))
    )
    data = made("heart")
    for case in CASES:
        bounds = declared_bounds("heart", data.rows, case)
        split = Case("heart", 1, data).split
        for found, tight in ((looked, False), (as_declared, True)):
            detector = METHODS["DPForest"](1, bounds, guessed_rows(len(split.reference)), _noise(1))
            with nothing_private():
                detector.set_params(tight_ranges=tight).fit(split.reference)
            assert found[case][-3:] == quality(split.outlying, detector.outlier_scores(split.points))


def _noise(epsilon):
    return seed_of("comparison", "heart", 1, epsilon, 0)


def _mean(method, control, epsilon, group):
    return fmean(ranged_number(name, method, control, epsilon, case) for name in SETS for case in GROUPS[group])


def test_groups_are_all_cases():
    assert {name: len(cases) for name, cases in GROUPS.items()} == {
        "1.2": 1, "10": 3, "100": 3, "own": 1, "own, anywhere": 1,
    }  # fmt: skip


def test_the_table_and_the_lines_of_the_page_have_each_mean(apart):
    records = ranges_table(numbered_ranges()).to_pylist()
    assert len(records) == len(CASES) * 2 * (2 * (len(METHODS) + 1) + len(SYNTHETIC)) + 1
    for record in records:
        case = Declared(record["factor"], record["data"])
        what = record["method"], record["control"], record["epsilon"], case
        assert record["auroc"] == pytest.approx(fmean(ranged_number(name, *what) for name in SETS))
    for line, (method, control) in zip(ranged_lines(apart), SHOWN, strict=True):
        expected = [decimals(_mean(method, control, 0.3, group)) for group in GROUPS]
        assert line["epsilon 0.3"] == " / ".join(expected)
        assert line["method"].startswith("control of") == control
    assert apart.plain == pytest.approx(fmean(ranged_number(name, "KNN", False, None, CASES[0]) for name in SETS))


def test_curves_are_what_the_legend_says(apart):
    figure = draw_ranges(apart).figure
    assert [axes.get_title(loc="left") for axes in figure.axes] == ["epsilon = 1", "epsilon = 0.3"]
    for axes, epsilon in zip(figure.axes, (1.0, 0.3)):
        found = {}
        for line in axes.lines:
            look = line.get_color(), line.get_marker(), line.get_markerfacecolor() == "white", line.get_markersize()
            found.setdefault(look, []).extend(line.get_ydata())
        for control, looks in ((False, CURVES), (True, CONTROLS)):
            for method, look in looks.items():
                heights = found[look.colour, look.marker, method in DECLARED, 3.5 if control else 5]
                assert heights == pytest.approx([_mean(method, control, epsilon, group) for group in GROUPS])
        levels = [line.get_ydata()[0] for line in axes.lines if line.get_color() == PLAIN.colour]
        assert levels == pytest.approx([apart.plain])


def test_the_tightest_case_is_the_comparison_s():
    found = declared_bounds("heart", made("heart").rows, CASES[0])
    usual = bounds_widened(made("heart").rows)
    assert (list(found.lower), list(found.upper)) == (list(usual.lower), list(usual.upper))
