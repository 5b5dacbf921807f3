"""What leaves the browser: the columns of the model and nothing else."""

import csv
import io
import json
import re
import time

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

import dpoutlier
from page_visits import (
    FEATURES,
    MAX_ROWS,
    made_patients,
    needs_chromium,
    overheard,
    rows_shown,
    saved,
    summary,
)

SECRETS = ["Ada\u00a0Byron", 'the "Countess", of\r\nLovelace', "=SENTINEL()", "SENTINEL\n", "", 'ü"SENTINEL,']
SECRET_NAMES = ["name SENTINEL", 'note, "SENTINEL"\nof a doctor', "SENTINEL"]


@needs_chromium
def test_only_the_models_columns_leave_the_browser(visits, server, key, detectors):
    points = made_patients(60, 20).drop(columns="patient")
    points["bmi"] = np.random.default_rng(21).uniform(12, 60, 60)
    shuffled = ["smoker", "bmi", "age", "glucose", "sex"]  # not in the model's order
    columns = [SECRET_NAMES[0], *shuffled[:2], SECRET_NAMES[1], *shuffled[2:], SECRET_NAMES[2]]
    for j, name in enumerate(SECRET_NAMES):
        points[name] = [SECRETS[(i + j) % len(SECRETS)] for i in range(60)]
    with overheard(server) as (url, notes):
        visit = visits(url)
        page = visit.open(key, "patients")
        visit.score(points[columns].to_csv(index=False), "SENTINEL.csv")
        expect(page.locator("#remarks")).to_have_text("3 columns that the model does not need stayed in this browser.")
        page.fill("#fpr", "20")
        page.press("#fpr", "Enter")
        expect(page.locator("#threshold-origin")).to_contain_text("a false-positive rate of 20")
        _, content = saved(page, "#download")
        page.click("#table-body tr:nth-child(2) td.score")
        expect(page.locator(".reasons li")).to_have_count(5)
        explained = page.locator(".reason-feature").all_inner_texts()
        shown = page.locator("#table-body tr").first.locator("td.value").all_text_contents()
        page.select_option("#model-select", "markup")
        expect(page.locator("#problem-text")).to_contain_text("which the model needs. Its columns are")
    heard = b"\0".join(notes)
    assert not re.search(b"SENTINEL|Byron|Countess|Lovelace|doctor", heard)
    bodies = points[list(FEATURES)].to_csv(index=False)
    assert bodies.encode() in heard
    assert heard.count(b"POST /v1/models/patients/score?missing=error ") == 1
    assert heard.count(b"POST /v1/models/patients/score?missing=null&target_fpr=0.2 ") == 1
    assert heard.count(b"POST /v1/models/patients/explain ") == 1
    assert heard.count(b"POST ") == 3
    detector, features = detectors["patients"], points[list(FEATURES)]
    scores = detector.outlier_scores(features)
    order = np.argsort(-scores, kind="stable")
    assert shown == points[columns].iloc[order[0]].astype(str).tolist()
    assert explained == [name for name, _, _ in detector.explain(features.iloc[[order[1]]]).ranking(0)]
    header, *records = csv.reader(io.StringIO(content.decode(), newline=""))
    assert header == [*columns, "outlier_score", "outside_bounds", "prediction", "p_value", "alarm"]
    assert [record[:-5] for record in records] == points[columns].astype(str).to_numpy().tolist()
    assert [float(record[-5]) for record in records] == scores.tolist()


@pytest.mark.slow
@needs_chromium
def test_models_of_one_column_and_of_no_names_get_theirs(visit, key, detectors):
    page = visit.open(key, "nameless")

    def found():
        _, content = saved(page, "#download")
        return [float(row["outlier_score"]) for row in csv.DictReader(io.StringIO(content.decode(), newline=""))]

    visit.score("b,a\n1,2\n5,9.5\n")
    assert found() == detectors["nameless"].outlier_scores([[1, 2], [5, 9.5]]).tolist()
    page.select_option("#model-select", "single")
    expect(page.locator("#problem-text")).to_contain_text("no column “x”")
    values = pd.DataFrame({"x": [np.nan, 5.5, np.nan]})
    for content in ("id,x\r\nP1,\r\nP2,5.5\r\nP3,\r\n", "x\n\n5.5\n\n", '\ufeffx,id\n,1\n"5.5",\n"",3'):
        visit.score(content)
        assert len(rows_shown(page)) == 3
        assert found() == detectors["single"].outlier_scores(values).tolist()
    assert [text for text, _ in visit.sent()[1:]] == ['x\n""\n5.5\n""\n'] * 2 + ['x\n""\n"5.5"\n""\n']


FIELDS = [
    "",
    "a",
    '"a"',
    "ü☃",
    '"ü, ""x"""',
    '"a\nb"',
    '"a\r\n"',
    'a"b',
    '"a"b',
    '"a"b"c"',
    ' "a"',
    '""',
    '""""',
    "5.5",
]


@pytest.mark.slow
@needs_chromium
def test_columns_are_cut_out_of_files_as_pythons_csv_reader_reads_them(visit, server):
    rng = np.random.default_rng(22)
    tables = []
    for _ in range(600):
        width = int(rng.integers(1, 5))
        names = [*rng.permutation(["x", '"y, ""z"""', "\ufeffü", '"a\nb"'])[:width].tolist()]
        ending = str(rng.choice(["\n", "\r\n", "\r"]))
        lines = [",".join(rng.choice(FIELDS, width).tolist()) for _ in range(rng.integers(1, 7))]
        lines[-1] += str(rng.choice(["", ending, '"', '" ,\n' if width == 1 else '"']))
        text = "\ufeff" * bool(rng.integers(2) or names[0] == "\ufeffü") + ending.join([",".join(names), *lines])
        header, *rows = csv.reader(io.StringIO(text.removeprefix("\ufeff"), newline=""))
        rows = [row or [""] for row in rows if row or width == 1]
        if rows and {len(row) for row in rows} == {width}:
            wanted = rng.permutation(header)[: rng.integers(1, width + 1)].tolist()
            tables.append((text, wanted, [wanted, *([row[header.index(name)] for name in wanted] for row in rows)]))
    assert len(tables) > 400
    found = visit.open().evaluate(
        """async (tables) => {
            const { pointsOfText } = await import("/static/points.js");
            const { Sent } = await import("/static/sent.js");
            const { cuts } = await import("/static/scoring.js");
            return Promise.all(tables.map(async ([text, wanted]) => {
                const features = wanted.map((name) => ({ name }));
                const sent = new Sent(pointsOfText(text, "points", wanted), { named: true, features });
                const all = sent.part(0, sent.length);
                const longest = Math.max(...Array.from({ length: sent.length }, (_, i) => sent.sizeOf(i, i + 1)));
                const most = Math.max(sent.sizeOf(0, sent.length) - 1, longest);
                const parts = cuts(sent, { rows: 3, bytes: most }).map(([first, last]) => sent.part(first, last));
                return { whole: await all.text(), size: all.size, said: sent.sizeOf(0, sent.length), most,
                    parts: await Promise.all(parts.map((part) => part.text())), sizes: parts.map((part) => part.size) };
            }));
        }""",
        [(text, wanted) for text, wanted, _ in tables],
    )
    for (text, _, wanted), got in zip(tables, found, strict=True):
        whole = [record or [""] for record in csv.reader(io.StringIO(got["whole"], newline=""), strict=True)]
        assert whole == wanted, repr(text)
        assert got["size"] == got["said"] == len(got["whole"].encode())
        parts = [[*csv.reader(io.StringIO(part, newline=""), strict=True)] for part in got["parts"]]
        assert [row for part in parts for row in part[1:]] == wanted[1:]
        assert all(part[0] == wanted[0] and len(part) <= 4 for part in parts)
        assert [len(part.encode()) for part in got["parts"]] == got["sizes"]
        assert max(got["sizes"]) <= got["most"]


@needs_chromium
def test_a_model_without_names_is_sent_all_columns_but_the_persons(visit):
    found = visit.open().evaluate(
        """async () => {
            const { pointsOfText } = await import("/static/points.js");
            const { Sent } = await import("/static/sent.js");
            const points = pointsOfText("b,id,a\\n1,P7,2\\n3,P8,\\n", "points", ["feature 0", "feature 1"]);
            return new Sent(points, { named: false, person: "id", features: [{}, {}] }).part(0, 2).text();
        }"""
    )
    assert found == "b,a\n1,2\n3,\n"


@needs_chromium
def test_a_model_that_is_replaced_between_two_parts_is_reported(visit, key, server, folder, detectors):
    page = visit.open(key, "replaced")
    seen = []

    def replace(route):
        seen.append(route.request.url)
        if len(seen) == 2:
            again = dpoutlier.DPGridKNN(1, features={"x": (0, 1), "y": (0, 1)}, bins=6)
            again.fit(pd.DataFrame({"x": [0.5] * 50, "y": [0.5] * 50})).save(folder / "new")
            (folder / "new.dpo").replace(folder / "replaced.dpo")
            until = time.monotonic() + 20
            while release() == first and time.monotonic() < until:
                time.sleep(0.02)
        route.continue_()

    def release():
        return json.loads(server.request("GET", "/v1/models/replaced", key=key).data)["release"]

    first = release()
    page.route("**/score*", replace)
    points = np.random.default_rng(23).uniform(0, 1, (MAX_ROWS + 5, 2)).round(3)
    content = "x,y\n" + "".join(f"{x},{y}\n" for x, y in points.tolist())
    visit.give(content)
    expect(page.locator("#problem-text")).to_contain_text("was replaced while the points were scored", timeout=25_000)
    expect(page.locator("#result")).to_be_hidden()
    assert release() != first
    assert len(seen) == 2
    visit.score(content)  # once more, all by the new one
    assert summary(page).startswith("8,005 points")
