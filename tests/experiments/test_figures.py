"""Figures: each curve is what its legend says, each bar what its caption names, and nothing is drawn that no table holds."""

import numpy as np
import pytest

from experiments.report.figures import PLOTS, draw_illustration, draw_plot
from experiments.report.judgements import judge_claims
from experiments.report.readings_figure import readings_figure
from experiments.report.steps import LADDER_EPSILONS, STEPS
from experiments.report.summary import Summary
from made_data import TINY
from numbered import BINS, BY_RULE, number, numbered

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def summary(tiny_results):
    return Summary(tiny_results)


@pytest.fixture(scope="module")
def apart():
    """In which every number is another one."""
    return Summary(numbered())


def _drawn_numbers(figure):
    """Every height at which a mark, line or bar of a figure stands; constant guides are dotted and are left out."""
    numbers = []
    for axes in figure.axes:
        for line in axes.lines:
            if line.get_linestyle() == ":" and len(set(line.get_ydata())) == 1:
                continue
            if axes.get_ylabel() and line.get_color() != "#DDDDDD":
                numbers += [float(value) for value in line.get_ydata()]
        for collection in axes.collections:
            for segment in collection.get_segments():
                numbers += [float(segment[0][1]), float(segment[1][1])]
    return numbers


def test_every_plotted_number_is_in_the_table(summary):
    """Heights are means, a split's means, or means plus or minus a spread of the lines that the figure's table shows."""
    for drawn in (draw_plot(name, summary) for name in PLOTS):
        permitted = set()
        for key in drawn.keys:
            for entry in summary.lines[key].metrics.values():
                permitted |= {entry.mean, *entry.by_split}
                permitted |= {entry.mean + sign * sd for sign in (-1, 1) for sd in (entry.sd_noise, entry.sd_splits)}
        permitted = np.sort(list(permitted))
        numbers = np.array(_drawn_numbers(drawn.figure))
        assert len(numbers) > 60
        nearest = permitted[np.clip(np.searchsorted(permitted, numbers), 1, len(permitted) - 1)]
        before = permitted[np.clip(np.searchsorted(permitted, numbers), 1, len(permitted) - 1) - 1]
        assert np.minimum(abs(nearest - numbers), abs(before - numbers)).max() < 1e-9


GREEN, RED, BLUE, BLACK = "#009E73", "#D55E00", "#0072B2", "#000000"
GREY, SAND, PURPLE = "#8A8A8A", "#E9B58F", "#CC79A7"


def _curves(axes):
    """Heights of each curve, by colour and dashes; bars and guides left out."""
    return {
        (line.get_color(), line.get_linestyle()): [float(value) for value in line.get_ydata()]
        for line in axes.lines
        if line.get_linestyle() != "None" and line.get_color() != "#DDDDDD"
    }


def _expected(dataset, metric, *, bins=None, epsilon=None):
    """The curves of one panel of the paper's figures, over b or over epsilon."""

    def heights(algorithm, control):
        if algorithm.startswith("DP"):
            places = [(b, epsilon) for b in TINY.bins] if bins is None else [(bins, value) for value in TINY.epsilons]
        else:
            places = [(b, None) for b in TINY.bins] if bins is None else [(bins, None)] * 2
        return [
            number(dataset, "base", algorithm, metric, control=control, bins=b, epsilon=value) for b, value in places
        ]

    plain = {
        (GREEN, dash): [number(dataset, "base", name, metric)] * 2 for name, dash in (("kNN", "-"), ("wkNN", "--"))
    }
    looks = {
        ("Grid", False): (RED, "-"),
        ("Grid-w", False): (RED, "--"),
        ("Grid", True): (SAND, "-"),
        ("Grid-w", True): (SAND, "--"),
    }
    looks |= {("DP Grid", False): (BLUE, "-"), ("DP Grid-w", False): (BLACK, "--")}
    looks |= {("DP Grid", True): (GREY, "-"), ("DP Grid-w", True): (GREY, "--")}
    return plain | {look: heights(*what) for what, look in looks.items()}


def _same(found, expected):
    assert found.keys() == expected.keys()
    for look, heights in expected.items():
        assert found[look] == pytest.approx(heights), look


def test_each_curve_of_the_paper_s_figures_is_what_its_legend_says(apart):
    figures = {name: draw_plot(name, apart).figure for name in PLOTS}
    for i, dataset in enumerate(TINY.sets):
        bins = BINS[dataset, "base"]
        left, right = figures["figure1"].axes[2 * i : 2 * i + 2]
        _same(_curves(left), _expected(dataset, "auroc", epsilon=1.25))
        _same(_curves(right), _expected(dataset, "auroc", bins=bins))
        assert [line.get_xdata()[0] for line in left.lines if line.get_color() == "#DDDDDD"] == [bins]
        assert left.get_ylim() == right.get_ylim()
        left, right = figures["figure2"].axes[2 * i : 2 * i + 2]
        _same(_curves(left), _expected(dataset, "ap", bins=bins))
        _same(_curves(right), _expected(dataset, "p_at_n", bins=bins))
        looks = {
            (BLUE, "-"): ("base", "base", False), (BLUE, ":"): ("base", "base", True),
            (RED, "-"): ("point", "point", False), (RED, ":"): ("point", "point", True),
            (PURPLE, "-"): ("declared-point", "declared", False), (PURPLE, ":"): ("declared-point", "declared", True),
        }  # fmt: skip
        expected = {
            look: [
                number(
                    dataset, variant, "DP Grid", "auroc", control=control, bins=BINS[dataset, tuned], epsilon=epsilon
                )
                for epsilon in TINY.epsilons
            ]
            for look, (variant, tuned, control) in looks.items()
        }
        found = _curves(figures["point"].axes[i])
        found.pop((GREY, ":"))  # the guide at .5
        _same(found, expected | {(GREEN, "-"): [number(dataset, "base", "kNN", "auroc")] * 2})


def test_nothing_drawn_leaves_its_panel(summary):
    for drawn in (draw_plot(name, summary) for name in ("figure1", "figure2")):
        for axes in drawn.figure.axes:
            low, high = axes.get_ylim()
            for collection in axes.collections:
                for segment in collection.get_segments():
                    assert segment[:, 1].max() <= high
                    assert segment[:, 1].min() >= low or low == 0


def _bars(axes):
    """Half the heights of the error bars."""
    segments = [segment for collection in axes.collections for segment in collection.get_segments()]
    upright = [segment for segment in segments if segment[0][0] == segment[1][0]]
    return sorted(round(float(abs(segment[1][1] - segment[0][1])) / 2, 9) for segment in upright)


def test_bars_are_the_spread_that_the_caption_names(summary):
    """Over the noise in the paper's figures, over the splits in the ladder."""
    figures = {name: draw_plot(name, summary).figure for name in PLOTS}
    for i, dataset in enumerate(TINY.sets):
        steps = [
            summary.entry(summary.key(dataset, step, "DP Grid", epsilon=epsilon)).sd_splits
            for step in STEPS
            for epsilon in LADDER_EPSILONS
        ]
        assert _bars(figures["ladder"].axes[i]) == pytest.approx(sorted(steps), abs=1e-8)
        noise = [
            summary.entry(summary.key(dataset, "base", algorithm, epsilon=epsilon, control=control), "ap").sd_noise
            for algorithm in ("DP Grid", "DP Grid-w")
            for control in (False, True)
            for epsilon in TINY.epsilons
        ]
        drawn = [bar for bar in _bars(figures["figure2"].axes[2 * i]) if bar]
        assert drawn == pytest.approx(sorted(value for value in noise if value > 1e-9), abs=1e-8)


def test_the_ladder_figure_has_each_step_and_control(apart):
    figure = draw_plot("ladder", apart).figure
    for axes, dataset in zip(figure.axes, TINY.sets, strict=True):
        found = {
            (line.get_color(), line.get_markerfacecolor(), round(float(line.get_ydata()[0]), 9))
            for line in axes.lines
            if line.get_marker() == "o"
        }
        expected = set()
        for step in ("base", "far", "right-scale", "declared", "public"):
            for epsilon, colour in ((5, BLUE), (1.25, RED), (0.3, PURPLE)):
                what = {"bins": BINS[dataset, step]} if step != "public" else {"bins": BY_RULE[epsilon], "k": 10}
                for control in (False, True):
                    height = number(dataset, step, "DP Grid", "auroc", epsilon=epsilon, control=control, **what)
                    expected.add((colour, "white" if control else colour, round(height, 9)))
        assert found == expected


def test_the_paper_s_figures_have_its_panels(summary):
    figures = {name: draw_plot(name, summary).figure for name in PLOTS}
    for name, labels in (
        ("figure1", {"grid parameter b", "privacy budget epsilon"}),
        ("figure2", {"privacy budget epsilon"}),
    ):
        assert len(figures[name].axes) == 10
        assert {axes.get_xlabel() for axes in figures[name].axes[-2:]} == labels
    left, right = figures["figure2"].axes[:2]
    assert (left.get_ylabel(), right.get_ylabel()) == ("AP", "P@n")
    titles = [axes.get_title(loc="left").split()[0] for axes in figures["figure1"].axes[::2]]
    assert titles == ["Lymph", "Diabetes", "Wdbc", "Heart", "Adult"]


def test_the_illustration_shows_six_rows_in_each_of_two_cells_and_their_centroids():
    left, right = draw_illustration().figure.axes
    rows = np.array(left.collections[1]._offsets3d).T
    cells, counts = np.unique(np.floor(rows * 2), axis=0, return_counts=True)
    assert counts.tolist() == [6, 6]
    centroids = np.array(right.collections[1]._offsets3d).T
    assert (np.floor(centroids * 2) == cells).all()
    assert ((centroids * 4) % 2 == 1).all()
    assert [text.get_text() for text in right.texts] == ["weight 6", "weight 6"]


def test_the_picture_of_the_readings_is_its_table(tiny_results, summary):
    judged = [one for one in judge_claims(tiny_results, summary) if one.findings]
    axes = readings_figure(judged).axes[0]
    signs = {(round(text.get_position()[0]), round(text.get_position()[1])): text.get_text() for text in axes.texts}
    for y, one in enumerate(judged):
        assert axes.get_yticklabels()[y].get_text().startswith(one.claim.name)
        for x, (reading, finding) in enumerate(one.findings.items()):
            assert axes.get_xticklabels()[x].get_text() == reading.name
            assert signs[x, y] == ("✓" if finding.holds else "✗")
