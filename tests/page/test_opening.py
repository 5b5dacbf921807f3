"""Key, model and statement."""

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect

from page_visits import MODELS, needs_chromium, saved, summary
from server_process import running_server


@needs_chromium
def test_a_wrong_key_is_reported_and_the_right_one_opens(visit, server, key):
    page = visit.open()
    expect(page.locator("#key")).to_be_focused()
    assert page.locator("#key").get_attribute("type") == "password"
    page.click("#key-show")
    assert page.locator("#key").get_attribute("type") == "text"
    page.fill("#key", "dpo_aaaaaaaaaa_wrong")
    page.keyboard.press("Enter")
    told = "This key is not valid here. Check it, or ask the operator of the server."
    expect(page.locator("#key-problem")).to_have_text(told)
    page.fill("#key", "no key at all ☃")
    page.keyboard.press("Enter")
    expect(page.locator("#key-problem")).to_contain_text("begins with dpo_")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    expect(page.locator("#work")).to_be_visible()
    assert key not in page.content()
    page.click("#forget-key")
    expect(page.locator("#key-view")).to_be_visible()
    assert page.input_value("#key") == ""


@needs_chromium
def test_models_are_shown_with_features_and_the_whole_statement(visit, key, detectors):
    page = visit.open(key)
    page.wait_for_selector("#model-features li")
    options = page.eval_on_selector_all("#model-select option", "all => all.map((one) => one.value)")
    assert sorted(options) == MODELS
    page.select_option("#model-select", "patients")
    expect(page.locator("#model-name")).to_have_text("patients")
    facts = page.locator("#model-facts").inner_text()
    assert "ε = 1" in facts
    assert "DPForest" in facts
    assert "publishable" in page.locator("#model-tags").inner_text()
    features = page.locator("#model-features").inner_text()
    assert "18 to 100" in features
    glucose = detectors["patients"].model_.domain.upper[3]  # narrowed to where the rows lie
    assert f"2 to {glucose:g}, or missing" in features
    assert "never, former, current" in features
    page.click("#statement-open")
    statement = str(detectors["patients"].privacy_statement())
    assert page.locator("#statement-text").text_content() == statement
    name, content = saved(page, "#statement-download")
    assert name == "patients-privacy-statement.txt"
    assert content.decode().rstrip("\n") == statement.rstrip("\n")
    page.keyboard.press("Escape")
    expect(page.locator("#statement")).to_be_hidden()
    expect(page.locator("#statement-open")).to_be_focused()


@needs_chromium
@pytest.mark.slow
def test_an_open_server_asks_for_no_key_and_is_given_the_time_that_it_asks_for(visits, folder, detectors):
    with running_server(folder, folder / "plain.dpo", "--open", "--rate", 1) as running:
        visit = visits(running.url)
        visit.expected = {429, 503}
        page = visit.open()
        expect(page.locator("#model-name")).to_have_text("plain")
        expect(page.locator("#key-view")).to_be_hidden()
        expect(page.locator("#model-choice")).to_be_hidden()
        expect(page.locator("#forget-key")).to_be_hidden()
        points = np.random.default_rng(3).uniform(0, 1, (40, 2))
        visit.score("x,y\n" + "".join(f"{x!r},{y!r}\n" for x, y in points.tolist()))
        scores = np.sort(detectors["plain"].outlier_scores(pd.DataFrame(points, columns=["x", "y"])))
        # The model has no threshold: 95 % of 40 points are 38, and the score of the 38th is where it starts.
        assert float(page.input_value("#threshold")) == pytest.approx(scores[37], rel=1e-5)
        expect(page.locator("#threshold-origin")).to_contain_text("95th percentile")
        assert f"{(scores > scores[37]).sum()} above the threshold" in summary(page)
        expect(page.locator("#fpr-form")).to_be_hidden()
        answers = page.evaluate("window.answers")
        waits = [place for place, one in enumerate(answers) if one["status"] == 429]
        assert waits  # list, model and scores were asked for at once
        for place in waits:
            before, after = answers[place : place + 2]
            assert after["path"] == before["path"]
            assert after["asked"] - before["answered"] >= 1000 * int(before["wait"]) - 5
        busy = [{"status": 503, "headers": {"Retry-After": "0"}, "body": "busy"}]
        page.route("**/score*", lambda route: route.fulfill(**busy.pop()) if busy else route.continue_())
        visit.score("x,y\n.5,.5\n")
        assert 503 in [one["status"] for one in page.evaluate("window.answers")]


@needs_chromium
def test_a_key_that_is_out_in_the_middle_is_asked_for_again_and_the_points_stay(visit, key):
    page = visit.open(key, "plain")
    visit.score("x,y\n.5,.5\n.9,.9\n")
    refused = {"status": 401, "json": {"error": {"code": "unauthorized", "message": "no longer"}}}
    page.route("**/explain", lambda route: route.fulfill(**refused))
    page.click("#table-body tr:first-child td.score")
    expect(page.locator("#key-problem")).to_contain_text("This key is not valid here.")
    expect(page.locator("#work")).to_be_hidden()
    page.unroute("**/explain")
    page.fill("#key", key)
    page.keyboard.press("Enter")
    expect(page.locator("#result")).to_be_visible()
