"""The page for people, used as people use it: in a real browser, against a real server, with no other host in reach."""

import csv
import io
import json
import re
import shutil
import socket
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import expect, sync_playwright

import dpoutlier
from dpoutlier import Category
from dpoutlier.server.keys import create_key
from server_process import running_server

CHROMIUM = shutil.which("chromium")
FILES = Path(dpoutlier.__file__).parent / "server" / "page"
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="the page is tested in chromium, which is not installed")

FEATURES = {
    "age": (18, 100),
    "sex": Category(["f", "m"]),
    "bmi": (12, 60),
    "glucose": (2, 25),
    "smoker": Category(["never", "former", "current"]),
}
MARKUP = ["<img src=x onerror=alert(1)>", 'a, "b" <b>bold</b>']
MOST_ROWS = 8000
MODELS = ["markup", "nameless", "patients", "plain", "replaced", "single"]


def made_patients(n, seed):
    rng = np.random.default_rng(seed)
    age = rng.gamma(9, 6, n).clip(18, 99)
    frame = pd.DataFrame(
        {
            "patient": [f"P{i}" for i in range(n)],
            "age": age.round().astype(int),
            "sex": rng.choice(["f", "m"], n),
            "bmi": rng.normal(26, 4, n).clip(14, 58).round(1),
            "glucose": np.exp(rng.normal(1.6, 0.15, n)).round(2),
            "smoker": rng.choice(["never", "former", "current"], n),
        }
    )
    frame.loc[:: n // 12, "bmi"] = 70.5  # outside the bounds
    return frame


# The server and the browser -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def detectors(folder):
    rng = np.random.default_rng(0)
    patients = dpoutlier.DPForest(
        1, bounds=FEATURES, missing=["glucose"], n_hint=3000, target_fpr=0.05, threshold_share=0.2
    ).fit(made_patients(3000, 1)[list(FEATURES)])
    plain = dpoutlier.DPGridKNN(1, bounds={"x": (0, 1), "y": (0, 1)}, bins=6)
    plain.fit(pd.DataFrame(rng.normal(0.5, 0.1, (500, 2)), columns=["x", "y"]))
    markup = dpoutlier.DPMarginals(1, bounds=dict.fromkeys(MARKUP, (0, 10)))
    markup.fit(pd.DataFrame(rng.normal(5, 1, (500, 2)), columns=MARKUP))
    single = dpoutlier.DPMarginals(1, bounds={"x": (0, 10)}, missing=["x"])
    single.fit(pd.DataFrame({"x": rng.normal(5, 1, 500)}))
    nameless = dpoutlier.DPMarginals(1, bounds=(0, 10))
    nameless.fit(rng.normal(5, 1, (500, 2)))
    found = {"patients": patients, "plain": plain, "markup": markup, "single": single, "nameless": nameless}
    found["replaced"] = plain
    for name, detector in found.items():
        detector.save(folder / name)
    return found


@pytest.fixture(scope="module")
def key(folder):
    return create_key(folder / "keys.json", ["*"])


@pytest.fixture(scope="module")
def server(folder, detectors, key):
    files = [folder / f"{name}.dpo" for name in MODELS]
    with running_server(folder, *files, "--keys", folder / "keys.json", "--max-rows", MOST_ROWS) as running:
        yield running


@pytest.fixture(scope="module")
def chromium():
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
        )
        yield browser
        browser.close()


WATCH = """addEventListener("securitypolicyviolation", (e) => console.error("policy " + e.violatedDirective));
    const [real, sent, answers] = [fetch, (window.sent = []), (window.answers = [])];
    window.fetch = async (path, options) => {
        if (path.includes("/score")) sent.push([await options.body.text(), options.body.size]);
        const asked = performance.now();
        const answer = await real(path, options);
        const wait = answer.headers.get("Retry-After");
        answers.push({ path, status: answer.status, wait, asked, answered: performance.now() });
        return answer;
    };"""


@dataclass
class Visit:
    """A page with all that it asked for and complained of."""

    page: object
    url: str
    asked: list = field(default_factory=list)
    complaints: list = field(default_factory=list)
    expected: set = field(default_factory=lambda: {401})
    given: int = 0

    def __post_init__(self):
        self.listeners = {
            "request": lambda request: self.asked.append(request),  # noqa: PLW0108 - a builtin takes no mark
            "pageerror": lambda error: self.complaints.append(str(error)),
            "console": self._console,
        }
        for event, listener in self.listeners.items():
            self.page.on(event, listener)

    def leave(self):
        """Leave a blank page to the next visit. Nothing may have been stored."""
        opened = self.page.url.startswith(self.url)
        stored = opened and self.page.evaluate("[localStorage.length, sessionStorage.length, document.cookie]")
        self.page.unroute_all(behavior="ignoreErrors")
        self.page.goto("about:blank")
        for event, listener in self.listeners.items():
            self.page.remove_listener(event, listener)
        assert stored in (False, [0, 0, ""])

    def _console(self, message):
        status = re.match(r"Failed to load resource: the server responded with a status of (\d+)", message.text)
        if message.type in {"error", "warning"} and not (status and int(status[1]) in self.expected):
            self.complaints.append(message.text)

    def check(self):
        assert self.complaints == []
        assert [one.url for one in self.asked if not one.url.startswith((self.url, "blob:" + self.url))] == []

    def open(self, key=None, model=None):
        self.page.goto(self.url)
        if key is not None:
            self.page.fill("#key", key)
            self.page.click("#key-form [type=submit]")
        if model is not None:
            self.page.select_option("#model-select", model)
            expect(self.page.locator("#model-name")).to_have_text(model)
        return self.page

    def give(self, content, name="points.csv"):
        content = content.encode() if isinstance(content, str) else content
        self.page.set_input_files("#file", {"name": name, "mimeType": "text/csv", "buffer": content})

    def score(self, content, name=None):
        """Give a file, under a new name unless one is given, and wait for its result."""
        self.given += 1
        name = name or f"points {self.given}.csv"
        self.give(content, name)
        expect(self.page.locator("#points-title")).to_have_text(name)
        expect(self.page.locator("#result")).to_be_visible()

    def sent(self):
        """The bodies of the requests for scores: text, and number of bytes."""
        return [(text, size) for text, size in self.page.evaluate("window.sent")]


@pytest.fixture(scope="module")
def pages(chromium):
    """Pages by the options of their contexts, each made once."""
    made = {}

    def page(**options):
        known = tuple(sorted(options.items()))
        if known not in made:
            made[known] = chromium.new_context(viewport={"width": 1280, "height": 900}, **options).new_page()
            made[known].set_default_timeout(10_000)
            made[known].add_init_script(WATCH)
        return made[known]

    return page


@pytest.fixture
def visits(pages, server):
    """Opens pages; in the end none of them may have complained, or have asked another host."""
    made = []

    def visit(url=server.url, **options):
        made.append(Visit(pages(**options), url))
        return made[-1]

    yield visit
    for one in made:
        one.leave()
        one.check()


@pytest.fixture
def visit(visits):
    return visits()


def rows_shown(page):
    """The numbers of the rows in the table, from 0, in the order shown."""
    return page.eval_on_selector_all("#table-body tr", "lines => lines.map((line) => Number(line.dataset.row))")


def summary(page):
    return page.locator("#summary").inner_text().replace("\u00a0", " ")


@contextmanager
def overheard(server):
    """An address in front of the server, and for each connection to it all that was sent, byte by byte."""

    def carry(source, target, note=None):
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if note is not None:
                    note.extend(data)
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(listening):
        with suppress(OSError):
            while True:
                near = listening.accept()[0]
                far = socket.create_connection(("127.0.0.1", server.port))
                ends.extend((near, far))
                note = bytearray()
                notes.append(note)
                for way in ((near, far, note), (far, near)):
                    threading.Thread(target=carry, args=way, daemon=True).start()

    ends, notes = [], []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=serve, args=(listening,), daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", notes
        listening.shutdown(socket.SHUT_RDWR)
    for one in ends:
        one.close()


def saved(page, button):
    with page.expect_download() as found:
        page.click(button)
    return found.value.suggested_filename, Path(found.value.path()).read_bytes()


# Without a browser --------------------------------------------------------------------------------------------------------


def test_the_files_hold_nothing_inline_and_name_no_other_host():
    names = {file.name for file in FILES.iterdir() if file.is_file()}
    assert {"index.html", "page.css", "main.js", "favicon.svg"} <= names
    for file in FILES.iterdir():
        text = file.read_text("utf-8")
        assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function", text), (
            file
        )
        assert not re.search(r"localStorage|sessionStorage|indexedDB|document\.cookie", text), file
        assert [link for link in re.findall(r"\w+://[^\s\"'`)]*", text) if link != "http://www.w3.org/2000/svg"] == []
    html = (FILES / "index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", html)
    for linked in re.findall(r"static/([\w.]+)", html):
        assert linked in names
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(ids) == len(set(ids))
    for script in FILES.glob("*.js"):
        for wanted in re.findall(r'\$\("([\w-]+)"\)', script.read_text("utf-8")):
            assert wanted in ids, f"{script.name} looks for {wanted}"


# Key, model, statement ----------------------------------------------------------------------------------------------------


@needs_chromium
def test_a_wrong_key_is_told_and_the_right_one_opens(visit, server, key):
    page = visit.open()
    expect(page.locator("#key")).to_be_focused()
    assert page.locator("#key").get_attribute("type") == "password"
    page.click("#key-show")
    assert page.locator("#key").get_attribute("type") == "text"
    page.fill("#key", "dpo_aaaaaaaaaa_wrong")
    page.keyboard.press("Enter")
    told = "This key is not valid here. Check it, or ask whoever runs the server."
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
    assert "2 to 25, or missing" in features
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


# Points -------------------------------------------------------------------------------------------------------------------


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
    assert first[5] == f"P{order[0]}"
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
def test_bad_files_are_told_in_clear_words(visit, key):
    page = visit.open(key, "patients")
    problem = page.locator("#problem-text")
    header = "age,sex,bmi,glucose,smoker"
    for content, words in (
        ("", "points.csv is empty"),
        ("\n" + header, "first line of points.csv is empty"),
        (header + "\r\n", "has a header, but no rows"),
        ("age,sex\n51,f\n", "no column “bmi”, “glucose”, “smoker”"),
        (header + "\n51,f,27,5,never\n\n51,f\n", "Line 4 of points.csv has 2 values, and the header names 5 columns"),
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
    assert [record[5:] for record in records[2:]] == [["", "", ""]] * 2
    page.click("#table-body tr:nth-child(3) td.score")
    expect(page.locator("#explanation-body")).to_have_text(
        "Row 3 has 'abc' in bmi, which is no number. Without it there is no score to explain."
    )
    line = "51,f,27,5,never\n"
    visit.give(header + "\n" + line * (MOST_ROWS + 4) + "51,f,x y,5,never\n")
    expect(problem).to_have_text(f"Row {MOST_ROWS + 5:,} has 'x y' in bmi, which is no number. {remedy}")


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
def test_of_two_models_the_one_chosen_last_is_used_also_if_the_other_answers_later(visit, key):
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


# What is sent -------------------------------------------------------------------------------------------------------------

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
    assert header == [*columns, "outlier_score", "outside_bounds", "prediction"]
    assert [record[:-3] for record in records] == points[columns].astype(str).to_numpy().tolist()
    assert [float(record[-3]) for record in records] == scores.tolist()


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
def test_a_model_that_is_replaced_between_two_parts_is_told(visit, key, server, folder, detectors):
    page = visit.open(key, "replaced")
    seen = []

    def replace(route):
        seen.append(route.request.url)
        if len(seen) == 2:
            again = dpoutlier.DPGridKNN(1, bounds={"x": (0, 1), "y": (0, 1)}, bins=6)
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
    points = np.random.default_rng(23).uniform(0, 1, (MOST_ROWS + 5, 2)).round(3)
    content = "x,y\n" + "".join(f"{x},{y}\n" for x, y in points.tolist())
    visit.give(content)
    expect(page.locator("#problem-text")).to_contain_text("was replaced while the points were scored", timeout=25_000)
    expect(page.locator("#result")).to_be_hidden()
    assert release() != first
    assert len(seen) == 2
    visit.score(content)  # once more, all by the new one
    assert summary(page).startswith("8,005 points")


# The result ---------------------------------------------------------------------------------------------------------------


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
        note, column = found.note(0).split(" Empty: ")
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
        "note": "What features add. Empty: share of the cells.",
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
    for note, words in (("Instead: the nearest region.", "usual:"), ("No region near gathers 5 rows.", "lowest at")):
        explained["note"] = note
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
    assert header == [*points.columns, "outlier_score", "outside_bounds", "prediction_2"]
    given = list(csv.reader(io.StringIO(buffer.getvalue(), newline="")))[1:]
    assert [record[:-3] for record in records] == given
    detector = detectors["patients"]
    scores = detector.outlier_scores(points[list(FEATURES)])
    assert [float(record[-3]) for record in records] == scores.tolist()
    outside = detector.outside_bounds(points[list(FEATURES)])
    assert [record[-2] for record in records] == ["true" if one else "false" for one in outside]
    assert [record[-1] for record in records] == ["-1" if score > 1.1 else "1" for score in scores]


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
    assert [len(pd.read_csv(io.StringIO(part))) for part in parts] == [MOST_ROWS] * 12 + [4000]
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
    visit.give(made_patients(MOST_ROWS + 10, 15).to_csv(index=False))
    expect(page.locator("#progress-text")).to_have_text("Scored 0 of 8,010 points")
    page.click("#cancel")
    expect(page.locator("#progress")).to_be_hidden()
    expect(page.locator("#status")).to_have_text("Cancelled.")
    expect(page.locator("#problem")).to_be_hidden()
    assert len(held) == 1


# Looks --------------------------------------------------------------------------------------------------------------------

CONTRASTS = """() => {
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const known = new Map();
    const channels = (text) => {
        if (!known.has(text)) {
            canvas.clearRect(0, 0, 1, 1);
            canvas.fillStyle = text;
            canvas.fillRect(0, 0, 1, 1);
            known.set(text, [...canvas.getImageData(0, 0, 1, 1).data]);
        }
        return known.get(text);
    };
    const light = ([r, g, b]) => [r, g, b].map((c) => c / 255)
        .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
    const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
            const color = channels(getComputedStyle(at).backgroundColor);
            if (color[3] === 255) return color;
        }
        return [255, 255, 255];
    };
    const poor = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const element = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !element.checkVisibility()) continue;
        if (element.closest(":disabled, .pill-text, title, .skip")) continue;
        const style = getComputedStyle(element);
        const drawn = element instanceof SVGElement ? style.fill : style.color;
        const [a, b] = [light(channels(drawn)), light(behind(element))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) poor.push([walk.currentNode.textContent.trim().slice(0, 30), ratio]);
    }
    return poor;
}"""


@pytest.mark.slow
@needs_chromium
@pytest.mark.parametrize("width", [390, pytest.param(1440, marks=pytest.mark.slow)])
def test_nothing_scrolls_sideways_and_text_stands_out(visits, key, width):
    visit = visits(has_touch=width == 390, reduced_motion="reduce")
    visit.page.set_viewport_size({"width": width, "height": 844})
    page = visit.open()
    expect(page.locator("#key-view")).to_be_visible()

    def check():
        for scheme in ("dark", "light"):
            page.emulate_media(color_scheme=scheme)
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            assert page.evaluate(CONTRASTS) == []

    check()
    visit.open(key, "patients")
    for tab in ("paste", "type", "file"):
        page.click(f"#tab-{tab}")
        check()
    visit.score(made_patients(150, 16).to_csv(index=False), "a-file-with-a-rather-long-name-that-has-no-blanks.csv")
    check()
    page.click("#table-body tr:first-child td.score")
    expect(page.locator(".reasons li")).to_have_count(5)
    check()
    page.click("#explanation-close")
    page.click("#statement-open")
    check()
    page.click("#statement-close")
    visit.give("nothing")
    expect(page.locator("#problem")).to_be_visible()
    check()
    for _ in range(2):
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.click("#theme")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != paper
        check()


@needs_chromium
@pytest.mark.slow
def test_the_threshold_follows_a_finger(visits, key):
    visit = visits(has_touch=True)
    page = visit.open(key, "patients")
    visit.score(made_patients(150, 17).to_csv(index=False))
    page.locator("#histogram").scroll_into_view_if_needed()
    box = page.locator("#histogram svg").bounding_box()
    session = page.context.new_cdp_session(page)
    y = box["y"] + 100
    for kind, share in (("touchStart", 0.8), ("touchMove", 0.6), ("touchMove", 0.4), ("touchEnd", None)):
        points = [] if share is None else [{"x": box["x"] + share * box["width"], "y": y}]
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    slider = page.get_by_role("slider")
    low, high, now = (float(slider.get_attribute(f"aria-value{end}")) for end in ("min", "max", "now"))
    plot = box["width"] - 44 - 14
    assert now == pytest.approx(low + (high - low) * (0.4 * box["width"] - 44) / plot, abs=(high - low) / 100)


@pytest.mark.slow
@needs_chromium
def test_the_keyboard_reaches_everything_in_order(visit, key):
    page = visit.open(key, "patients")
    visit.score(made_patients(20, 18).to_csv(index=False))
    page.evaluate("document.activeElement.blur(), scrollTo(0, 0)")
    seen = []
    where = (
        "document.activeElement.id || document.activeElement.getAttribute('role') || document.activeElement.className"
    )
    page.locator(".skip").focus()
    for _ in range(40):
        seen.append(page.evaluate(where))
        page.keyboard.press("Tab")
    wanted = [
        *(
            "skip",
            "forget-key",
            "theme",
            "model-select",
            "statement-open",
            "points-toggle",
            "slider",
            "threshold",
            "fpr",
        ),
        *("log-heights", "download", "region", "sort", "opener"),
    ]
    assert [name for name in dict.fromkeys(seen) if name in wanted] == wanted
