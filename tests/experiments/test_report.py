"""The report: verdicts that follow the numbers, figures that show only what the tables hold, a page that needs nothing else."""

import csv
import re
import runpy
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from matplotlib.figure import Figure

from experiments.measure.rows import Row, rows_of_table
from experiments.measure.study import TUNED
from experiments.report.answers import answers
from experiments.report.comparison import Comparison
from experiments.report.figures import FIGURES, Drawn
from experiments.report.page import page
from experiments.report.ranges import Ranges
from experiments.report.steps import LADDER_EPSILONS, STEPS
from experiments.report.summary import Summary
from experiments.report.tables import chosen_table, ladder_table
from experiments.report.wording import decimals, title_of
from experiments.report.write import TABLES, write_report
from made_data import TINY, made_sets
from numbered import BINS, BY_RULE, OTHER_K, K, number, numbered

pytestmark = pytest.mark.slow  # whole experiments, if small ones


@pytest.fixture(scope="module")
def summary(tiny_results):
    return Summary(tiny_results)


def _changed(results, change):
    """The results with other numbers; ``change`` takes a row and returns its metrics, or None to leave them."""
    rows = []
    for row in results.rows:
        value = change(row)
        rows.append(row if value is None else row._replace(auroc=value, ap=value, p_at_n=value))
    return replace(results, rows=rows)


# Means and spreads


def test_a_line_is_the_mean_over_splits_with_both_spreads(tiny_results, summary):
    """From the rows by hand: mean of the splits' means, noise within splits, spread between them."""
    key = summary.key("heart", "base", "DP Grid", epsilon=1.25)
    rows = [row for row in tiny_results.rows if (*row[:7],) == tuple(key)]
    by_split = np.array([[row.ap for row in rows if row.split == split] for split in range(2)])
    assert by_split.shape == (2, 2)
    entry = summary.entry(key, "ap")
    assert entry.mean == pytest.approx(by_split.mean())
    assert entry.sd_noise == pytest.approx(np.sqrt(by_split.var(axis=1, ddof=1).mean()))
    assert entry.sd_splits == pytest.approx(by_split.mean(axis=1).std(ddof=1))
    assert summary.lines[key].runs == 4
    assert summary.lines[key].ran_out == pytest.approx(np.mean([row.ran_out for row in rows]))


READ = ("base", "limited", "endless", "point", "far", "penalty", "scaled", "ranged", "text", "ranged-penalty")


@pytest.mark.parametrize("variant", READ)
def test_every_reading_has_all_six_algorithms(summary, variant):
    for dataset in TINY.sets:
        for algorithm in ("kNN", "wkNN", "Grid", "Grid-w"):
            for bins in TINY.bins:
                assert 0 <= summary.entry(summary.key(dataset, variant, algorithm, bins=bins)).mean <= 1
        for algorithm in ("DP Grid", "DP Grid-w"):
            for epsilon in TINY.epsilons:
                assert 0 <= summary.entry(summary.key(dataset, variant, algorithm, epsilon=epsilon)).mean <= 1
            for bins in TINY.bins:
                assert 0 <= summary.entry(summary.key(dataset, variant, algorithm, epsilon=1.25, bins=bins)).mean <= 1


@pytest.mark.parametrize("variant", ["base", "far", "point", "right-scale", "declared", "declared-point", "public"])
def test_every_curve_has_its_control(summary, variant):
    for dataset in TINY.sets:
        for epsilon in TINY.epsilons:
            for algorithm in ("kNN", "wkNN", "DP Grid", "DP Grid-w"):
                for control in (False, True):
                    key = summary.key(dataset, variant, algorithm, epsilon=epsilon, control=control)
                    assert 0 <= summary.entry(key).mean <= 1


# Tables and answers, on results in which every number is another one


@pytest.fixture(scope="module")
def apart():
    return Summary(numbered())


def test_the_ladder_has_each_step_beside_its_control(apart):
    for record in ladder_table(apart, LADDER_EPSILONS, STEPS).to_pylist():
        dataset = next(name for name in TINY.sets if title_of(name) == record["dataset"])
        epsilon = record["epsilon"]
        for step in ("base", "far", "right-scale", "declared", "public"):
            what = {"bins": BINS[dataset, step]} if step != "public" else {"bins": BY_RULE[epsilon], "k": 10}
            for column, control in ((step, False), (f"{step}_control", True)):
                expected = number(dataset, step, "DP Grid", "auroc", epsilon=epsilon, control=control, **what)
                assert record[column] == pytest.approx(expected)
        assert record["k_nn_base"] == pytest.approx(number(dataset, "base", "kNN", "auroc"))
        assert record["k_nn_declared"] == pytest.approx(number(dataset, "declared", "kNN", "auroc"))
        assert record["k_nn_public"] == pytest.approx(number(dataset, "public", "kNN", "auroc", k=10))


def test_the_chosen_table_says_what_was_chosen(apart):
    for record, dataset in zip(chosen_table(apart).to_pylist(), TINY.sets, strict=True):
        assert record["k"] == K[dataset]
        assert record["k_of_plain_k_nn"] == OTHER_K[dataset]
        assert [record[f"b_{name}"] for name in TUNED] == [BINS[dataset, name] for name in TUNED]
        assert record["b_public_by_epsilon"] == "10 3 3 2 2"


def test_the_answers_read_the_numbers_that_they_name(apart):
    grid, private, _, complete = answers(apart)
    for line, dataset in zip(private.lines, TINY.sets, strict=True):
        bins = BINS[dataset, "base"]
        what = {"bins": bins, "epsilon": 1.25}
        expected = [number(dataset, "base", "kNN", "auroc"), number(dataset, "base", "Grid", "auroc", bins=bins)]
        expected += [number(dataset, "base", "DP Grid", "auroc", control=control, **what) for control in (False, True)]
        assert line[1:] == tuple(map(decimals, expected))
    for line, dataset in zip(grid.lines, TINY.sets, strict=False):
        losses = [
            np.mean(
                [
                    number(dataset, "base", plain, "auroc") - number(dataset, variant, name, "auroc", bins=b)
                    for b in (3, 10)
                ]
            )
            for plain, name, variant in (
                ("kNN", "Grid", "base"),
                ("wkNN", "Grid-w", "base"),
                ("kNN", "Grid", "limited"),
                ("wkNN", "Grid-w", "limited"),
            )
        ]
        assert line[1:] == tuple(map(decimals, losses))
    for line, epsilon in zip(complete.lines, (5, 1.25, 0.3), strict=True):
        public = {"bins": BY_RULE[epsilon], "k": 10, "epsilon": epsilon}
        means = [
            np.mean([number(d, "base", "DP Grid", "auroc", bins=BINS[d, "base"], epsilon=epsilon) for d in TINY.sets]),
            np.mean(
                [
                    number(d, "declared", "DP Grid", "auroc", bins=BINS[d, "declared"], epsilon=epsilon)
                    for d in TINY.sets
                ]
            ),
            np.mean([number(d, "public", "DP Grid", "auroc", **public) for d in TINY.sets]),
            np.mean([number(d, "public", "DP Grid", "auroc", control=True, **public) for d in TINY.sets]),
            np.mean([number(d, "declared", "kNN", "auroc") for d in TINY.sets]),
        ]
        assert line[1:] == tuple(map(decimals, means))


@pytest.mark.parametrize(("at", "close", "useful"), [(0.56, ".015", ".015"), (0.54, "none", "none")])
def test_how_much_epsilon_it_takes(tiny_results, at, close, useful):
    """Within the tolerance of k-NN at .6, and above the control at .5 by more than it."""
    changed = _changed(tiny_results, lambda row: 0.5 if row.control else (at if row.epsilon else 0.6))
    assert set(answers(Summary(changed))[2].lines) == {(title_of(name), close, useful) for name in TINY.sets}


# Files and page


class _Page(HTMLParser):
    """What a page loads, links to and nests."""

    VOID = ("meta", "img", "br")

    def __init__(self):
        super().__init__()
        self.open, self.sources, self.ids, self.links, self.text = [], [], [], [], []

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.sources += [attrs[name] for name in ("src", "srcset", "data", "action") if name in attrs]
        self.ids += [attrs["id"]] if "id" in attrs else []
        self.links += [attrs["href"]] if "href" in attrs else []
        assert tag not in {"script", "link", "iframe"}
        if tag == "img":
            assert attrs["alt"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def written(tiny_results, tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    return folder, write_report(tiny_results, made_sets(), folder, 12.0)


def test_the_page_is_whole_and_needs_no_other_file(written):
    folder, found = written
    text = found.page.read_text()
    page = _Page()
    page.feed(text)
    assert page.open == []
    assert len(page.sources) == 11
    assert all(source.startswith("data:image/svg+xml;base64,") for source in page.sources)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert not re.search(r"https?://|url\(|@import", re.sub(r'src="data:[^"]*"', "", text))
    shown = " ".join(" ".join(page.text).split())
    assert "This is a tiny run" in shown
    for one in found.judgements:
        assert one.claim.text in shown
        assert one.figure in shown
        assert one.turned_by in shown
    assert sorted(path.name for path in (folder / "figures").iterdir()) == sorted(
        f"{name}.{kind}" for name in FIGURES for kind in ("png", "svg")
    )


def test_the_tables_hold_every_run_and_every_mean(written, tiny_results, summary):
    folder, _ = written
    assert rows_of_table(pq.read_table(folder / "results.parquet"), Row) == tiny_results.rows
    with (folder / "summary.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == len(summary.lines)
    for line, found in zip(lines, summary.lines.values(), strict=True):
        assert line["dataset"] == found.key.dataset
        assert float(line["ran_out"]) == found.ran_out
        for metric, entry in found.metrics.items():
            written = [float(line[f"{metric}_{name}"]) for name in ("mean", "sd_noise", "sd_splits")]
            assert written == [entry.mean, entry.sd_noise, entry.sd_splits]
    with (folder / "table1.csv").open() as stream:
        assert [row["outliers"] for row in csv.DictReader(stream)] == ["5"] * 5


def test_written_again_it_is_the_same_bytes_and_nothing_of_an_old_run_stays(written, tiny_results, tmp_path):
    """Here the old run had an attack, and the new one has none. What is not ours is not touched."""
    folder, _ = written
    (tmp_path / "figures").mkdir()
    old = [tmp_path / "attack.csv", tmp_path / "figures" / "attack.png", tmp_path / ".summary.csv.x.part"]
    mine = tmp_path / "mine.csv"
    for path in (*old, mine):
        path.write_text("old")
    write_report(replace(tiny_results, attack=[]), made_sets(), tmp_path, 99.0)
    assert not [path for path in old if path.exists()]
    assert mine.read_text() == "old"
    names = [path.relative_to(folder) for path in folder.rglob("*") if path.is_file()]
    same = [name for name in names if name.name != "report.html" and name.stem != "attack"]
    assert (len(names), len(same)) == (37, 33)
    assert all((tmp_path / name).read_bytes() == (folder / name).read_bytes() for name in same)


def test_the_page_of_the_docs_is_made_from_the_tables(written, tmp_path):
    """docs/make_reproduction.py: each of its look-ups finds one line."""
    folder, found = written
    maker = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "make_reproduction.py"))
    maker["main"](folder, tmp_path)
    text = (tmp_path / "reproduction.md").read_text()
    for one in found.judgements:
        assert f"| {one.claim.text} *{one.claim.test.replace('*', '')}* | **{one.verdict}** | " in text
        assert f"{one.figure} |" in text
    for picture in re.findall(r"\]\((reproduction-\w+\.png)\)", text):
        assert (tmp_path / picture).read_bytes()[1:4] == b"PNG"


def test_names_are_escaped(tiny_results):
    """Nothing that is shown can become markup."""
    summary = Summary(replace(tiny_results, study=replace(TINY, name="<b>odd</b>")))
    blank = [Drawn(name, "<i>", "<i>", Figure()) for name in FIGURES if name not in {"attack", "readings"}]
    table = pa.table({"<i>": ["<i>"]})
    comparison = Comparison(summary.study, tiny_results.comparison)
    ranges = Ranges(summary.study, tiny_results.ranges)
    text = page(summary, [], comparison, ranges, dict.fromkeys(TABLES, table), blank, 1.0, 1.0)
    assert "&lt;b&gt;odd" in text
    assert "<i>" not in text
    assert "<b>" not in text
