"""The page for people, used as people use it: in a real browser, against a real server, with no other host in reach."""

import numpy as np
import pandas as pd
import pytest
from playwright.sync_api import sync_playwright

import dpoutlier
from dpoutlier.server.keys import create_key
from page_visits import CHROMIUM, FEATURES, MARKUP, MAX_ROWS, MODELS, WATCH, Visit, made_patients
from server_process import running_server


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("page")


@pytest.fixture(scope="module")
def detectors(folder):
    rng = np.random.default_rng(0)
    patients = dpoutlier.DPForest(
        1, features=FEATURES, missing=["glucose"], n_rows_hint=3000, target_fpr=0.05, threshold_share=0.2
    ).fit(made_patients(3000, 1)[list(FEATURES)])
    plain = dpoutlier.DPGridKNN(1, features={"x": (0, 1), "y": (0, 1)}, bins=6)
    plain.fit(pd.DataFrame(rng.normal(0.5, 0.1, (500, 2)), columns=["x", "y"]))
    markup = dpoutlier.DPMarginals(1, features=dict.fromkeys(MARKUP, (0, 10)))
    markup.fit(pd.DataFrame(rng.normal(5, 1, (500, 2)), columns=MARKUP))
    single = dpoutlier.DPMarginals(1, features={"x": (0, 10)}, missing=["x"])
    single.fit(pd.DataFrame({"x": rng.normal(5, 1, 500)}))
    nameless = dpoutlier.DPMarginals(1, features=(0, 10))
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
    with running_server(folder, *files, "--keys", folder / "keys.json", "--max-rows", MAX_ROWS) as running:
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
