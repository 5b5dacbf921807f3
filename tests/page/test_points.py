"""Points that are chosen, dropped, pasted and typed."""

import csv
import io

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from page_visits import (
    FEATURES,
    MAX_ROWS,
    made_patients,
    needs_chromium,
    rows_shown,
    saved,
    summary,
)


@needs_chromium
def test_a_chosen_file_is_scored_and_sorted_most_outlying_first(visit, key, detectors):
    points = made_patients(230, 5)
    content = points.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig")
    page = visit.open(key, "patients")
    expect(page.locator(".promise")).to_contain_text("Only the model's columns leave this browser")
    visit.score(content, "patients.csv")
    sent = points[list(FEATURES)].to_csv(index=False)
    assert visit.sent() == [(sent, len(sent))]
    detector = detectors["patients"]
    scores = detector.outlier_scores(points[list(FEATURES)])
    outside = detector.outside_bounds(points[list(FEATURES)])
    above = int((detector.predict(points[list(FEATURES)]) == -1).sum())
    assert summary(page).startswith(f"230 points, {above} above the threshold (")
    assert f"{outside.sum()} outside the bounds" in summary(page)
    order = np.argsort(-scores, kind="stable")
    assert rows_shown(page) == order[:100].tolist()
    first = page.locator("#table-body tr").first.locator("td, th").all_inner_texts()
    assert first[:2] == ["1", str(order[0] + 1)]
    assert float(first[2]) == pytest.approx(scores[order[0]], rel=1e-3)
    assert first[6] == f"P{order[0]}"  # after its p-value
    page.click("#page-last")
    assert rows_shown(page) == order[200:].tolist()
    expect(page.locator("#page-place")).to_have_text("201 to 230 of 230")


@pytest.mark.slow
@needs_chromium
def test_files_that_are_dropped_and_rows_that_are_pasted_are_scored(visit, key, detectors):
    points = made_patients(30, 6)
    page = visit.open(key, "patients")
    drop = """(text) => {
        const data = new DataTransfer();
        data.items.add(new File([text], "dropped.csv", { type: "text/csv" }));
        for (const type of ["dragenter", "dragover", "drop"])
            document.querySelector("footer").dispatchEvent(
                new DragEvent(type, { dataTransfer: data, bubbles: true, cancelable: true }));
    }"""
    page.evaluate(drop, points.to_csv(index=False))
    expect(page.locator("#points-title")).to_have_text("dropped.csv")
    scores = detectors["patients"].outlier_scores(points[list(FEATURES)])
    order = np.argsort(-scores, kind="stable").tolist()
    assert rows_shown(page) == order
    page.click("#points-toggle")
    page.click("#tab-paste")
    page.fill("#paste", points.to_csv(index=False, sep="\t"))  # as a spreadsheet copies
    page.click("#pane-paste [type=submit]")
    expect(page.locator("#points-title")).to_have_text("pasted rows")
    expect(page.locator("#remarks")).to_contain_text("tabs")
    assert rows_shown(page) == order
    assert visit.sent()[-1][0] == points[list(FEATURES)].to_csv(index=False)


@pytest.mark.slow
@needs_chromium
def test_a_typed_row_is_scored_and_explained_and_the_next_one_joins_it(visit, key, detectors):
    page = visit.open(key, "patients")
    page.click("#tab-file")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    expect(page.locator("#pane-type")).to_be_visible()
    page.click("#pane-type [type=submit]")
    expect(page.locator("#row-problem")).to_contain_text("age needs a value")
    expect(page.get_by_label("age", exact=True)).to_be_focused()
    for name, value in (("age", "51"), ("bmi", "71.5")):
        page.get_by_label(name, exact=True).fill(value)  # 71.5 is outside the bounds, which is permitted
    page.get_by_label("sex", exact=True).select_option("f")
    page.get_by_label("smoker", exact=True).select_option("never")
    page.click("#pane-type [type=submit]")  # glucose stays empty: the model has a cell for that
    row = pd.DataFrame([[51, "f", 71.5, None, "never"]], columns=list(FEATURES))
    score = float(detectors["patients"].outlier_scores(row)[0])
    expect(page.locator(".verdict strong")).to_have_text(f"{score:.4g}")
    expect(page.locator("#explanation .aside")).to_contain_text("outside the declared range")
    expect(page.locator("#explanation-title")).to_be_focused()
    page.keyboard.press("Escape")
    page.get_by_label("bmi", exact=True).fill("25")
    page.keyboard.press("Enter")
    expect(page.locator("#explanation-title")).to_have_text("Row 2")
    row["bmi"] = 25.0
    expect(page.locator(".verdict strong")).to_have_text(f"{detectors['patients'].outlier_scores(row)[0]:.4g}")
    assert len(rows_shown(page)) == 2


@pytest.mark.slow
@needs_chromium
def test_bad_files_are_reported_in_clear_words(visit, key):
    page = visit.open(key, "patients")
    problem = page.locator("#problem-text")
    header = "age,sex,bmi,glucose,smoker"
    for content, words in (
        ("", "points.csv is empty"),
        ("\n" + header, "first line of points.csv is empty"),
        (header + "\r\n", "has a header, but no rows"),
        ("age,sex\n51,f\n", "no column “bmi”, “glucose”, “smoker”"),
        (header + "\n51,f,27,5,never\n\n51,f\n", "Line 4 of points.csv has 2 values, but the header names 5 columns"),
        ("age,age,sex,bmi,glucose,smoker\n1,1,f,27,5,never\n", "two columns named “age”"),
    ):
        visit.give(content)
        expect(problem).to_contain_text(words)
        expect(page.locator("#result")).to_be_hidden()
    assert visit.sent() == []
    visit.expected = {400, 401}
    visit.give(header + "\n51,f,27,5,never\n,f,27,,never\n40,m,abc,5,never\n")
    remedy = "Fill or remove such rows, or press “Leave points without a value unscored”."
    expect(problem).to_have_text(f"Row 2 has no value in age. {remedy}")
    page.click("#leave-unscored")
    expect(page.locator("#result")).to_be_visible()
    assert summary(page).endswith("2 without a score")
    assert rows_shown(page) == [0, 1, 2]
    _, content = saved(page, "#download")
    records = list(csv.reader(io.StringIO(content.decode(), newline="")))
    assert [record[5:] for record in records[2:]] == [[""] * 5] * 2
    page.click("#table-body tr:nth-child(3) td.score")
    expect(page.locator("#explanation-body")).to_have_text(
        "Row 3 has 'abc' in bmi, which is not a number. Without it there is no score to explain."
    )
    line = "51,f,27,5,never\n"
    visit.give(header + "\n" + line * (MAX_ROWS + 4) + "51,f,x y,5,never\n")
    expect(problem).to_have_text(f"Row {MAX_ROWS + 5:,} has 'x y' in bmi, which is not a number. {remedy}")


@needs_chromium
def test_other_encodings_and_separators_are_read_and_said(visit, key, detectors):
    page = visit.open(key, "patients")
    text = 'age;sex;bmi;glucose;smoker;Größe\n51;f;27.5;5;never;"groß; ""sehr"""\n'
    for content, words in (
        (text.encode("utf-8-sig"), ["semicolons"]),
        (text.encode("utf-16"), ["UTF-16", "semicolons"]),
        (text.replace("\n", "\r\n").encode("cp1252"), ["Windows-1252", "semicolons"]),
    ):
        visit.score(content)
        for word in words:
            expect(page.locator("#remarks")).to_contain_text(word)
        cells = page.locator("#table-body tr").first.locator("td").all_inner_texts()
        assert cells[-1] == 'groß; "sehr"'
    row = pd.DataFrame([[51, "f", 27.5, 5, "never"]], columns=list(FEATURES))
    assert (
        float(page.locator("#table-body td.score").first.get_attribute("title"))
        == detectors["patients"].outlier_scores(row)[0]
    )


@needs_chromium
def test_the_same_file_is_scored_by_the_model_that_is_chosen_next(visit, key):
    points = made_patients(30, 19).assign(x=0.5, y=np.linspace(0, 1, 30))
    page = visit.open(key, "patients")
    visit.score(points.to_csv(index=False))
    page.select_option("#model-select", "markup")
    expect(page.locator("#problem-text")).to_contain_text("which the model needs")
    expect(page.locator("#result")).to_be_hidden()
    page.select_option("#model-select", "plain")
    expect(page.locator("#threshold-origin")).to_contain_text("95th percentile")
    expect(page.locator("#problem")).to_be_hidden()
    assert summary(page).startswith("30 points")


@needs_chromium
def test_of_two_models_the_model_chosen_last_is_used(visit, key):
    held = []
    visit.page.route("**/v1/models/markup", lambda route: held.append(route))  # noqa: PLW0108 - a builtin takes no mark
    page = visit.open(key, "plain")  # markup is the first, and is asked for before
    (late,) = held
    with page.expect_response("**/v1/models/markup") as answer:
        late.continue_()
    answer.value.finished()
    visit.score("x,y\n.5,.5\n")
    assert page.locator("#model-name").inner_text() == "plain"


@pytest.mark.slow
@needs_chromium
def test_records_are_found_and_read_as_pythons_csv_reader_does(visit, server):
    rng = np.random.default_rng(11)
    texts = ["".join(rng.choice([*'a", \n\r;ü'], rng.integers(1, 24)).tolist()) for _ in range(3000)]
    page = visit.open()
    found = page.evaluate(
        """async (texts) => {
            const { fieldsOf, findRecords } = await import("/static/csv.js");
            return texts.map((text) => {
                const bytes = new TextEncoder().encode(text);
                const { starts, ends, sizes } = findRecords(bytes);
                const records = starts.map((start, i) => new TextDecoder().decode(bytes.subarray(start, ends[i])));
                return records.map((record, i) => (sizes[i] === 0 ? [] : fieldsOf(record)).concat([String(sizes[i])]));
            });
        }""",
        texts,
    )
    for text, records in zip(texts, found, strict=True):
        wanted = [[*record, str(len(record))] for record in csv.reader(io.StringIO(text, newline=""))]
        assert records == wanted, repr(text)
