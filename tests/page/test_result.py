"""Table, threshold, explanation and download."""

import csv
import io
import re
import time

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

import dpoutlier
from page_visits import (
    FEATURES,
    MARKUP,
    MAX_ROWS,
    made_patients,
    needs_chromium,
    rows_shown,
    saved,
    summary,
)


@needs_chromium
def test_headers_sort_and_say_so(visit, key, detectors):
    points = made_patients(40, 7)
    points["note"] = ["b" if i % 3 else "" for i in range(40)]
    page = visit.open(key, "patients")
    visit.score(points.to_csv(index=False))

    def sort(name):
        page.get_by_role("columnheader", name=name, exact=True).get_by_role("button").click()
        return page.get_by_role("columnheader", name=name, exact=True).get_attribute("aria-sort"), rows_shown(page)

    scores = detectors["patients"].outlier_scores(points[list(FEATURES)])
    assert sort("age") == ("ascending", np.argsort(points["age"], kind="stable").tolist())
    assert sort("age") == ("descending", np.argsort(-points["age"], kind="stable").tolist())
    assert page.locator("[aria-sort]").count() == 1
    kept, order = sort("Row")
    assert (kept, order) == ("ascending", list(range(40)))
    assert sort("Score") == ("descending", np.argsort(-scores, kind="stable").tolist())
    assert sort("Score") == ("ascending", np.argsort(scores, kind="stable").tolist())
    empty = [i for i in range(40) if i % 3 == 0]
    others = [i for i in range(40) if i % 3]
    assert sort("note") == ("ascending", others + empty)
    assert sort("note") == ("descending", others + empty)
    outside = detectors["patients"].outside_bounds(points[list(FEATURES)])
    assert sort("Bounds") == ("descending", np.argsort(~outside, kind="stable").tolist())


@needs_chromium
def test_the_threshold_moves_by_mouse_by_keyboard_and_by_number(visit, key, detectors):
    points = made_patients(500, 8)
    detector = detectors["patients"]
    scores = detector.outlier_scores(points[list(FEATURES)])
    page = visit.open(key, "patients")
    visit.score(points.to_csv(index=False))
    slider = page.get_by_role("slider")

    def check():
        threshold = float(slider.get_attribute("aria-valuenow"))
        above = int((scores > threshold).sum())
        assert f" {above} above the threshold" in summary(page)
        assert f"{above} of 500 points above" in slider.get_attribute("aria-valuetext")
        outliers = page.locator('#table-body tr[data-prediction="-1"]').count()
        assert outliers == min(above, 100)
        return threshold

    assert check() == -detector.offset_
    low, high = (float(slider.get_attribute(f"aria-value{end}")) for end in ("min", "max"))
    assert (low, high) == (scores.min(), scores.max())
    box = page.locator("#histogram svg").bounding_box()
    grip = page.locator(".grip").bounding_box()
    x, y = grip["x"] + grip["width"] / 2, box["y"] + 120
    page.mouse.move(x, y)
    page.mouse.down()
    seen = []
    for share in (0.7, 0.5, 0.3):
        page.mouse.move(box["x"] + share * box["width"], y, steps=4)
        seen.append(check())
    page.mouse.up()
    assert seen == sorted(seen, reverse=True)
    page.mouse.move(box["x"] + 0.9 * box["width"], y)
    assert check() == seen[-1]  # it was let go
    expect(slider).to_be_focused()
    page.keyboard.press("ArrowRight")
    stepped = check()
    assert stepped > seen[-1]
    page.keyboard.press("PageUp")
    assert check() - stepped > 5 * (stepped - seen[-1])
    page.keyboard.press("PageDown")
    page.keyboard.press("ArrowLeft")
    assert check() == pytest.approx(seen[-1])
    page.keyboard.press("End")
    assert check() == high
    assert " 0 above the threshold" in summary(page)
    page.keyboard.press("Home")
    assert check() == low
    page.fill("#threshold", "1.25")
    assert check() == 1.25
    page.click("#threshold-reset")
    assert check() == -detector.offset_
    assert len(visit.sent()) == 1  # all of it was worked out in the page


@needs_chromium
def test_a_false_positive_rate_is_asked_of_the_server(visit, key, detectors, folder):
    page = visit.open(key, "patients")
    visit.score(made_patients(60, 9).to_csv(index=False))
    assert page.input_value("#fpr") == "5"
    page.fill("#fpr", "20")
    page.click("#fpr-form button")
    expect(page.locator("#threshold-origin")).to_contain_text("a false-positive rate of 20")
    moved = dpoutlier.load(folder / "patients.dpo").set_threshold(target_fpr=0.2)
    assert float(page.input_value("#threshold")) == pytest.approx(-moved.offset_, rel=1e-5)
    visit.expected = {400, 401}
    page.fill("#fpr", "-3")
    page.click("#fpr-form button")
    expect(page.locator("#problem-text")).to_contain_text("target_fpr")


@needs_chromium
def test_a_row_is_explained_by_click_and_by_enter_and_escape_leads_back(visit, key, detectors):
    points = made_patients(50, 10)
    detector = detectors["patients"]
    order = np.argsort(-detector.outlier_scores(points[list(FEATURES)]), kind="stable").tolist()
    page = visit.open(key, "patients")
    visit.score(points.to_csv(index=False))

    def check(row):
        expect(page.locator("#explanation-title")).to_have_text(f"Row {row + 1}")
        expect(page.locator("#explanation")).not_to_have_attribute("aria-busy", "true")
        found = detector.explain(points[list(FEATURES)].iloc[[row]])
        names = page.locator(".reason-feature").all_inner_texts()
        assert names == [name for name, _, _ in found.ranking(0)]
        adds = [float(text.replace("\N{MINUS SIGN}", "-")) for text in page.locator(".reason-adds").all_inner_texts()]
        assert adds == pytest.approx([part for _, part, _ in found.ranking(0)], abs=6e-4)
        instead = detector.explain(points[list(FEATURES)].iloc[[row]]).instead(names[0], 0)
        if instead[0]:
            usual = float(instead[1]) <= float(f"{found.typical_score:.4g}")
            expect(page.locator(".reasons li").first).to_contain_text("usual: " if usual else "lowest at ")
            expect(page.locator(".reasons li").first).to_contain_text(f", score then {instead[1]}")
        note, column = found.note(0).split(" 'Empty' is ")
        assert column.count(".") == 1
        assert page.locator("#explanation .note").inner_text() == note

    page.click("#table-body tr:nth-child(3) td.score")
    check(order[2])
    expect(page.locator("#explanation-title")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#explanation")).to_be_hidden()
    expect(page.get_by_role("button", name=f"Explain row {order[2] + 1}", exact=True)).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    check(order[3])
    page.click("#explanation-next")
    check(order[4])
    page.click("#explanation-close")
    expect(page.get_by_role("button", name=f"Explain row {order[4] + 1}", exact=True)).to_be_focused()


@needs_chromium
def test_what_is_not_usual_is_not_called_so_and_ranges_are_short(visit, key):
    page = visit.open(key, "patients")
    visit.score("age,sex,bmi,glucose,smoker\n51,f,27,5,never\n")
    rows = [
        {"feature": "age", "value": "182", "adds": 2.0, "instead": "119.1396 to 119.1849", "then": "3.25", "empty": 1},
        {"feature": "bmi", "value": "27", "adds": 1.0, "instead": "31.23456 to 40.00001", "then": "3.001", "empty": 1},
        {"feature": "sex", "value": "f", "adds": 0.5, "instead": "m", "then": "3", "empty": None},
        {"feature": "smoker", "value": "never", "adds": 0.5, "instead": "", "then": None, "empty": None},
    ]
    explained = {
        "outlier_score": 9.0,
        "outside_bounds": False,
        "prediction": -1,
        "note": "What features add. 'Empty' is the share of the cells.",
        "reached": False,
        "counterfactual": "age 119.1396 to 119.1849 instead of 182 would bring the score from 9 to 3.25",
        "rows": rows,
    }
    answer = {"typical_score": 3.00049, "features": [row["feature"] for row in rows], "explanations": [explained]}
    page.route("**/explain", lambda route: route.fulfill(json=answer))
    page.click("#table-body tr:first-child td.score")
    expect(page.locator(".reason-instead")).to_have_text(
        [
            "lowest at 119.1 to 119.2, score then 3.25",
            "lowest at 31.23 to 40, score then 3.001",
            "usual: m, score then 3",
        ]
    )
    said = "age 119.1 to 119.2 instead of 182 would bring the score from 9 to 3.25."
    expect(page.locator("#explanation .instead")).to_have_text(said)
    expect(page.locator("#explanation .note")).to_have_text("What features add.")
    rows[:] = [row | {"then": None} for row in rows[1:3]]  # as of a grid
    for note, reached, words in (
        ("'Instead' shows where the nearest region differs.", True, "usual:"),
        ("No near region gathers 5 rows.", False, "lowest at"),
    ):
        explained |= {"note": note, "reached": reached}
        page.click("#explanation-close")
        page.click("#table-body tr:first-child td.score")
        expect(page.locator(".reason-instead")).to_have_text([f"{words} 31.23 to 40", f"{words} m"])
        expect(page.locator("#explanation .note")).to_have_text(note)
    for given, value, shown in (
        ("119.1396 to 119.1849", 119.12, "119.14 to 119.18"),
        ("119.1396 to 119.1399", 7, "119.1396 to 119.1399"),
        ("1234567 to 2345678", 7, "1235000 to 2346000"),
        ("-0.000123456 to 0", 7, "-0.0001235 to 0"),
        ("1.25e-07 to 2.5e-07", 7, "1.25e-7 to 2.5e-7"),
        ("f to m", 7, "f to m"),
    ):
        call = "async ([text, value]) => (await import('/static/words.js')).shortRange(text, value)"
        assert page.evaluate(call, [given, value]) == shown


@needs_chromium
def test_the_download_is_the_file_with_scores_to_the_bit(visit, key, detectors):
    points = made_patients(300, 12)
    rng = np.random.default_rng(13)
    points["bmi"] = rng.uniform(12, 60, 300)
    odd = ['a "quoted" word', "two\r\nlines", "=1+1", " blank ", "ü, ☃", ""]
    points["remark, odd"] = [odd[i % len(odd)] for i in range(300)]
    points["prediction"] = "old"
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\r\n", quoting=csv.QUOTE_MINIMAL)
    writer.writerow(points.columns)
    writer.writerows(
        [[repr(v) if isinstance(v, float) else v for v in row] for row in points.astype(object).to_numpy()]
    )
    page = visit.open(key, "patients")
    visit.score(buffer.getvalue().encode("utf-8-sig"), "my patients.csv")
    page.fill("#threshold", "1.1")
    page.get_by_role("columnheader", name="age", exact=True).get_by_role("button").click()  # no matter for the file
    name, content = saved(page, "#download")
    assert name == "my patients-scored.csv"
    header, *records = csv.reader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    assert header == [*points.columns, "outlier_score", "outside_bounds", "prediction_2", "p_value", "alarm"]
    given = list(csv.reader(io.StringIO(buffer.getvalue(), newline="")))[1:]
    assert [record[:-5] for record in records] == given
    detector = detectors["patients"]
    scores = detector.outlier_scores(points[list(FEATURES)])
    assert [float(record[-5]) for record in records] == scores.tolist()
    outside = detector.outside_bounds(points[list(FEATURES)])
    assert [record[-4] for record in records] == ["true" if one else "false" for one in outside]
    assert [record[-3] for record in records] == ["-1" if score > 1.1 else "1" for score in scores]
    assert [float(record[-2]) for record in records] == detector.p_values(points[list(FEATURES)]).tolist()
    alarms = detector.alarms(points[list(FEATURES)])
    assert [record[-1] for record in records] == ["true" if one else "false" for one in alarms]


def strange_patients(n, seed):
    """Every sixth one is like none of the reference rows."""
    points = made_patients(n, seed)
    points.loc[::6, ["age", "bmi", "glucose"]] = [19, 58, 24]
    return points


@needs_chromium
def test_alarms_are_those_of_the_library_at_any_rate(visit, key, detectors):
    points, detector = strange_patients(90, 20), detectors["patients"]
    page = visit.open(key, "patients")
    visit.score(points.to_csv(index=False))
    p_values = detector.p_values(points[list(FEATURES)])
    assert page.input_value("#fdr") == "0.1"
    seen = set()
    for fdr in ("0.1", "0.0001", "0.02", "0.05", "0.25", "0.9999"):
        page.fill("#fdr", fdr)
        alarms = detector.alarms(points[list(FEATURES)], fdr=float(fdr))
        seen.add(int(alarms.sum()))
        expect(page.locator("#flagged")).to_contain_text(f"{alarms.sum()} flagged of 90 points")
        shown = {
            int(row): (text, flagged)
            for row, text, flagged in page.eval_on_selector_all(
                "#table-body tr",
                """lines => lines.map((line) => [line.dataset.row, line.querySelector(".p-value").title,
                    !line.querySelector(".p-value .tag").hidden])""",
            )
        }
        assert {row: float(text) for row, (text, _) in shown.items()} == dict(enumerate(p_values.tolist()))
        assert {row: flagged for row, (_, flagged) in shown.items()} == dict(enumerate(alarms.tolist()))
        _, content = saved(page, "#download")
        records = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
        assert [record["alarm"] for record in records] == [str(one).lower() for one in alarms.tolist()]
    assert len(seen) > 2
    page.fill("#fdr", "0.0001")
    expect(page.locator("#flagged")).to_contain_text("none ever is")
    expect(page.locator("#flagged")).to_contain_text("More rows times epsilon give smaller ones.")
    page.fill("#fdr", "0.25")
    for wrong in ("1", "0", "-1", ""):
        page.fill("#fdr", wrong)
        expect(page.locator("#flagged")).to_have_text("The rate must be a number between 0 and 1.")
        assert page.get_attribute("#fdr", "aria-invalid") == "true"
    _, content = saved(page, "#download")
    records = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    alarms = detector.alarms(points[list(FEATURES)], fdr=0.25)  # the last rate that can be used
    assert [record["alarm"] for record in records] == [str(one).lower() for one in alarms.tolist()]
    page.get_by_role("columnheader", name="p-value", exact=True).get_by_role("button").click()
    assert rows_shown(page) == np.argsort(p_values, kind="stable").tolist()
    assert len(visit.sent()) == 1  # all of it was worked out in the page


@needs_chromium
def test_points_without_a_score_have_no_alarm_and_do_not_count(visit, key, detectors):
    points, detector = strange_patients(60, 21), detectors["patients"]
    points["bmi"] = points["bmi"].astype(object)
    points.loc[[0, 6, 7], "bmi"] = ""
    page = visit.open(key, "patients")
    visit.expected = {400, 401}
    visit.give(points.to_csv(index=False))
    page.click("#leave-unscored")
    expect(page.locator("#table-body tr")).to_have_count(60)
    whole = points[points["bmi"] != ""]
    alarms = detector.alarms(whole[list(FEATURES)].astype({"bmi": float}))
    expect(page.locator("#flagged")).to_contain_text(f"{alarms.sum()} flagged of 57 points")
    _, content = saved(page, "#download")
    records = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    assert [record["alarm"] for record in records if record["p_value"]] == [str(one).lower() for one in alarms]
    assert [record["p_value"] == record["alarm"] == "" for record in records] == (points["bmi"] == "").tolist()


@needs_chromium
def test_without_p_values_there_is_nothing_to_flag(visit, key):
    page = visit.open(key, "plain")
    visit.score("x,y\n0.5,0.5\n0.1,0.9\n")
    expect(page.locator("#flagging")).to_be_hidden()
    assert "p-value" not in page.locator("#table-header th").all_inner_texts()
    assert saved(page, "#download")[1].decode().splitlines()[0] == "x,y,outlier_score,outside_bounds,prediction"
    assert "False alarms" not in page.locator("#model-facts").inner_text()
    expect(page.locator("#model-warning")).to_be_hidden()
    expect(page.locator("#result-warning")).to_be_hidden()


@needs_chromium
def test_a_threshold_that_cannot_be_trusted_is_a_headline(visit, key, detectors):
    found = {"expected": 0.05, "lower": 0.004, "upper": 0.31, "level": 0.9, "trusted": False}
    page = visit.page

    def described(route):
        route.fulfill(json=route.fetch().json() | {"false_alarms": found})

    visit.open(key, "patients")
    assert detectors["patients"].false_alarms().trusted
    expect(page.locator("#model-warning")).to_be_hidden()
    expect(page.locator("#model-facts")).to_contain_text("% of normal points (90\N{NO-BREAK SPACE}% confidence)")
    page.route("**/v1/models/patients", described)
    visit.open(key, "patients")
    visit.score(made_patients(20, 22).to_csv(index=False))
    said = (
        "The model\N{RIGHT SINGLE QUOTATION MARK}s threshold cannot be trusted: it may flag 0.4 % to 31 % of normal points "
        "(90 % confidence)."
    )
    for place in ("#model-warning", "#result-warning"):
        expect(page.locator(place)).to_be_visible()
        assert page.locator(place).inner_text().replace("\N{NO-BREAK SPACE}", " ") == said
    first = "(id) => document.querySelector(id).firstElementChild.id"
    assert page.evaluate(first, "#model") == "model-warning"
    top = "(id) => document.querySelector(id).getBoundingClientRect().top"
    assert page.evaluate(top, "#result-warning") < page.evaluate(top, "#summary")
    found |= {"expected": 0.0, "lower": 0.0, "upper": 0.0}
    visit.open(key, "patients")
    expect(page.locator("#model-warning")).to_contain_text("it lies above every score")


@needs_chromium
def test_markup_in_names_and_values_is_text(visit, key):
    page = visit.open(key, "markup")
    assert MARKUP[0] in page.locator("#model-features").inner_text()
    hostile = '<script>alert(2)</script><svg onload="alert(3)">'
    buffer = io.StringIO()
    csv.writer(buffer).writerows([[*MARKUP, hostile], ["5", "5", hostile], ["<b>x</b>", "9.9", hostile]])
    visit.expected = {400, 401}
    visit.give(buffer.getvalue(), f"{hostile[:20]}.csv")
    expect(page.locator("#problem-text")).to_contain_text("<b>x</b>")
    page.click("#leave-unscored")
    expect(page.locator("#table-body tr")).to_have_count(2)
    texts = page.locator("#table-header th").all_inner_texts()
    assert texts[5:] == [*MARKUP, hostile]
    assert page.locator("#table-body td").last.inner_text() == hostile
    page.click("#table-body tr:first-child td.score")
    expect(page.locator(".reason-feature").first).to_have_text(re.compile("<"))
    assert page.locator("main script, main svg[onload], main img[src=x], td b").count() == 0


@needs_chromium
@pytest.mark.slow
def test_100_000_rows_go_in_whole_parts_and_take_seconds(visit, key, detectors):
    points = made_patients(100_000, 14)
    points["note"] = "two\nlines"
    content = points.to_csv(index=False)
    page = visit.open(key, "patients")
    begin = time.monotonic()
    visit.score(content)
    assert time.monotonic() - begin < 20
    assert summary(page).startswith("100,000 points")
    parts = [text for text, _ in visit.sent()]
    assert "two" not in "".join(parts)
    assert [len(pd.read_csv(io.StringIO(part))) for part in parts] == [MAX_ROWS] * 12 + [4000]
    scores = detectors["patients"].outlier_scores(points[list(FEATURES)])
    assert rows_shown(page) == np.argsort(-scores, kind="stable")[:100].tolist()
    begin = time.monotonic()
    page.get_by_role("columnheader", name="patient", exact=True).get_by_role("button").click()
    assert rows_shown(page) == list(range(100))
    page.get_by_role("slider").press("ArrowLeft")
    assert time.monotonic() - begin < 6
    _, saved_content = saved(page, "#download")
    records = csv.DictReader(io.StringIO(saved_content.decode(), newline=""))
    assert [float(record["outlier_score"]) for record in records] == scores.tolist()


@needs_chromium
def test_scoring_can_be_cancelled(visit, key):
    page = visit.open(key, "patients")
    held = []
    page.route("**/score*", lambda route: held.append(route))  # noqa: PLW0108 - a builtin takes no mark
    visit.give(made_patients(MAX_ROWS + 10, 15).to_csv(index=False))
    expect(page.locator("#progress-text")).to_have_text("Scored 0 of 8,010 points")
    page.click("#cancel")
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("Cancelled.")
    expect(page.locator("#problem")).to_be_hidden()
    assert len(held) == 1
