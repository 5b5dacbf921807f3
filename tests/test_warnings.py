"""What is warned of, and that nothing of ours ever changes the warnings of others."""

import itertools
import re
import subprocess
import sys
import textwrap
import threading
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import dpoutlier
from dpoutlier import DPForest, DPGridKNN, DPMarginals, GridKNN, Ledger, _warn
from dpoutlier._warn import nothing_to_protect
from dpoutlier.audit.configuration import Configuration
from dpoutlier.exceptions import ColumnNamesWarning, LargeEpsilonWarning, RepeatedFitWarning, UnsafeWarning

SOURCES = sorted(Path(dpoutlier.__file__).parent.rglob("*.py"))
pytestmark = [
    pytest.mark.filterwarnings(f"{action}::dpoutlier.exceptions.{name}")
    for action, name in (
        ("error", "ColumnNamesWarning"),
        ("error", "LargeEpsilonWarning"),
    )
]
ROWS = np.full((20, 2), 0.3)
CHANGES = re.compile(
    r"catch_warnings|simplefilter|filterwarnings|resetwarnings|showwarn|warnings\.filters|from warnings import"
)
EXAMPLES = re.compile(r"^ *(>>>|\.\.\.) .*$", re.MULTILINE)
"""Lines of docstrings that show what a user may do."""


def made():
    return DPMarginals(1, features=(0, 1), bins=3)


# Filters ------------------------------------------------------------------------------------------------------------------


def test_no_code_of_ours_touches_the_filters_of_the_process():
    """Whoever needs silence says what is expected in the present context (``_warn``)."""
    found = {path.name: CHANGES.findall(EXAMPLES.sub("", path.read_text("utf-8"))) for path in SOURCES}
    assert {name: texts for name, texts in found.items() if texts} == {}


IN_THREADS = """
    import sys, threading, warnings
    import numpy as np
    from dpoutlier import DPForest, DPGridKNN, DPMarginals
    from dpoutlier.audit.configuration import Configuration
    from dpoutlier.exceptions import UnsafeWarning

    sys.setswitchinterval(1e-5)
    before = list(warnings.filters)
    rows = [[str(0.3), "x"], ["nan", "1e400"], [None, float("inf")]] * 50

    def fits():
        for _ in range(15):
            DPMarginals(1, features=(0, 1), bins=3).fit(rows)
            DPGridKNN(1, features=(0, 1), bins=3).fit(np.full((9, 2), np.nan))
            Configuration("forest", {"epsilon": 1, "features": (0, 1), "n_trees": 2, "depth": 2}, 2).fit(np.zeros((3, 2)), 1)

    threads = [threading.Thread(target=fits) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before, "the filters have changed"
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        DPMarginals(1, features=(0, 1), bins=3, unsafe_seed=1).fit(np.zeros((2, 2)))
    assert [one.category for one in caught] == [UnsafeWarning]
    DPMarginals(1, features=(0, 1), bins=3, unsafe_seed=1).fit(np.zeros((2, 2)))
"""


def test_fits_in_threads_leave_the_warnings_of_the_process_alone():
    """In a process of its own, since what it may break is the process."""
    command = [sys.executable, "-c", textwrap.dedent(IN_THREADS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert "UnsafeWarning: NOT PRIVATE: unsafe_seed" in done.stderr


def test_what_is_expected_in_one_thread_is_not_in_another():
    seen, inside, go = [], threading.Event(), threading.Event()

    def other():
        inside.wait(10)
        with pytest.warns(UnsafeWarning, match="NOT PRIVATE"):
            DPMarginals(1, features=(0, 1), bins=3, unsafe_seed=1).fit(ROWS)
        seen.append("warned")
        go.set()

    thread = threading.Thread(target=other)
    thread.start()
    with nothing_to_protect():
        inside.set()
        go.wait(10)
        DPMarginals(1, features=(0, 1), bins=3, unsafe_seed=1).fit(ROWS)  # a warning would be an error here
    thread.join()
    assert seen == ["warned"]


# Several fits -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def _new_process(monkeypatch):
    monkeypatch.setattr(_warn, "_fits", itertools.count(1))


def repeated(run):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [one for one in caught if one.category is RepeatedFitWarning]


@pytest.mark.usefixtures("_new_process")
def test_a_second_fit_without_a_ledger_warns_once():
    detector = made()
    assert repeated(lambda: detector.fit(ROWS)) == []
    found = repeated(lambda: detector.fit(ROWS))
    assert len(found) == 1
    warning = found[0]
    assert "epsilons add up" in str(warning.message)
    assert "Ledger" in str(warning.message)
    assert warning.filename == __file__
    assert repeated(lambda: [made().fit(ROWS) for _ in range(3)]) == []


@pytest.mark.usefixtures("_new_process")
@pytest.mark.parametrize(
    "run",
    [
        lambda: clone(made().fit(ROWS)).fit(ROWS),
        lambda: cross_val_score(made(), ROWS, scoring=lambda *_: 0.0, cv=2),
        lambda: GridSearchCV(made(), {"bins": [2, 3]}, scoring=lambda *_: 0.0, cv=2).fit(ROWS),
        lambda: [DPForest(1, features=(0, 1), n_rows_hint=20).fit(ROWS), made().fit(ROWS)],
    ],
    ids=["clone", "cross_val_score", "GridSearchCV", "another detector"],
)
def test_searches_and_copies_count_too(run):
    assert len(repeated(run)) == 1


@pytest.mark.usefixtures("_new_process")
def test_fits_that_cost_nobody_anything_do_not_count(tmp_path):
    ledger = Ledger.create(tmp_path / "budget.ledger")
    ledger.open_budget("rows", epsilon=9)

    def run():
        for _ in range(3):
            DPMarginals(1, features=(0, 1), bins=3, ledger=ledger, dataset="rows").fit(ROWS)
            GridKNN(features=(0, 1), bins=3).fit(ROWS)
            Configuration("marginals", {"epsilon": 1, "features": (0, 1), "bins": 2}).fit(np.zeros((2, 1)))
            with nothing_to_protect():
                made().fit(ROWS)

    assert repeated(run) == []
    assert repeated(lambda: made().fit(ROWS)) == []
    assert len(repeated(lambda: made().fit(ROWS))) == 1


def test_a_statement_speaks_of_its_own_fit():
    page = str(made().fit(ROWS).privacy_statement())
    assert "epsilon (of this fit)" in page
    assert "(total)" not in page
    assert "cross-validation" in " ".join(page.split())


# Large epsilons, and columns without names -----------------------------------------------------------------------------


def test_a_large_epsilon_warns():
    with pytest.warns(LargeEpsilonWarning, match="epsilon is 11, which protects little") as caught:
        DPMarginals(11, features=(0, 1), bins=3).fit(ROWS)
    assert caught[0].filename == __file__
    DPMarginals(10, features=(0, 1), bins=3).fit(ROWS)  # a warning would be an error


def test_from_an_epsilon_of_30_on_counts_are_the_exact_ones():
    """What the warning says."""
    with pytest.warns(LargeEpsilonWarning):
        detector = DPGridKNN(40, features=(0, 1), bins=4).fit(ROWS)
    assert sorted(detector.model_.counts.counts.tolist()) == [0] * 15 + [20]


NAMED = {"age": (0, 120), "bmi": (10, 80)}
PLAIN = dpoutlier.Bounds([0, 10], [120, 80])


def test_named_bounds_and_columns_without_names_warn():
    with pytest.warns(ColumnNamesWarning, match="They are assumed to be age, bmi, in this order") as caught:
        DPMarginals(1, features=NAMED, bins=3).fit(ROWS)
    assert caught[0].filename == __file__
    DPMarginals(1, features=NAMED, bins=3).fit(pd.DataFrame(ROWS, columns=["age", "bmi"]))
    DPMarginals(1, features=PLAIN, bins=3).fit(ROWS)


def test_a_scaler_before_the_detector_warns():
    people = pd.DataFrame({"age": [30.0, 40.0, 50.0], "bmi": [20.0, 25.0, 30.0]})
    with pytest.warns(ColumnNamesWarning, match="A scaler before the detector changes the units"):
        make_pipeline(StandardScaler(), DPMarginals(1, features=NAMED, bins=3)).fit(people)
