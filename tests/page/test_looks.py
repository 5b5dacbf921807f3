"""Widths, themes, contrast, fingers and keys."""

import pytest
from playwright.sync_api import expect

from page_visits import made_patients, needs_chromium

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
    doubtful = {"expected": 0.05, "lower": 0.004, "upper": 0.31, "level": 0.9, "trusted": False}
    page.route(
        "**/v1/models/patients", lambda route: route.fulfill(json=route.fetch().json() | {"false_alarms": doubtful})
    )
    visit.open(key, "patients")
    visit.score(made_patients(150, 16).to_csv(index=False))
    expect(page.locator("#result-warning")).to_be_visible()
    page.fill("#fdr", "0.0001")
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
