"""What a user waits for: nothing heavy is imported before it is needed."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from dpoutlier import DPGridKNN, GridKNN, load
from dpoutlier.exceptions import InvalidParameterError

HEAVY = ("sklearn", "pandas", "polars", "pyarrow", "matplotlib", "rich", "numba", "scipy")


def imported(program, *arguments):
    """Which heavy packages a program imports."""
    ask = f"{program}\nimport sys\nprint(*(name for name in {HEAVY} if name in sys.modules))"
    run = subprocess.run([sys.executable, "-c", ask, *arguments], capture_output=True, text=True, check=True)
    return set(run.stdout.split("\n")[-2].split())


def test_import_alone_loads_nothing_heavy():
    assert imported("import dpoutlier; dpoutlier.Bounds; dpoutlier.Guarantee") == set()


def test_what_scores_and_serves_never_loads_the_code_that_reads_reference_rows(tmp_path):
    """The import contracts say so; they cannot see a module that is imported by its name, as detectors are."""
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    path = DPGridKNN(1, features=(0, 1), bins=4, target_fpr=0.1).fit(rows).save(tmp_path / "m")
    program = """
import json, sys, dpoutlier
from server_process import call, loaded_app
body = json.dumps({"points": [[0.1, 0.2]]}).encode()
app = loaded_app(models=(("m", sys.argv[1]),))
for question in ("score", "explain"):
    answer = call(app, "POST", f"/v1/models/m/{question}", headers={"Content-Type": "application/json"}, body=body)
    assert answer[0] == 200, answer
loaded = dpoutlier.load(sys.argv[1])
loaded.predict([[0.1, 0.2]])
loaded.count_intervals([[0.1, 0.2]])
assert not [name for name in sys.modules if name.startswith("dpoutlier.trusted")]
loaded.estimator()
assert "dpoutlier.trusted.fit" in sys.modules
"""
    given = {
        name: value for name, value in os.environ.items() if not name.startswith("PROMETHEUS")
    }  # of another test's server
    given["PYTHONPATH"] = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", program, str(path)], check=True, env=given)


def test_loading_and_scoring_need_no_scikit_learn(tmp_path):
    path = (
        DPGridKNN(1, features=(0, 1), bins=4).fit(np.random.default_rng(0).uniform(size=(50, 2))).save(tmp_path / "m")
    )
    program = "import sys, dpoutlier; dpoutlier.load(sys.argv[1]).score_samples([[0.1, 0.2]])"
    assert imported(program, str(path)) <= {"numba", "scipy"}  # numba imports scipy for its linear algebra


@pytest.mark.parametrize(
    "make", [lambda: DPGridKNN(1, features=(0, 1), bins=4, target_fpr=0.1), lambda: GridKNN((0, 1), bins=4)]
)
def test_what_was_loaded_is_the_detector_but_for_fitting(make, tmp_path):
    rows, points = np.random.default_rng(0).uniform(size=(50, 2)), np.random.default_rng(1).uniform(size=(30, 2))
    detector = make().fit(rows)
    loaded = load(detector.save(tmp_path / "m"), secret=True, n_jobs=2)
    assert (loaded.outlier_scores(points) == detector.outlier_scores(points)).all()
    assert (loaded.walk(points).visited == detector.walk(points).visited).all()
    assert loaded.n_features_in_ == 2
    assert not hasattr(loaded, "fit")
    again = loaded.estimator()
    assert type(again) is type(detector)
    assert (again.score_samples(points) == detector.score_samples(points)).all()
    assert again.n_jobs == 2
    assert again.k == detector.k
    assert loaded.model_.detector in repr(loaded)


@pytest.mark.parametrize("names", [False, True])
def test_what_was_loaded_refuses_other_columns_in_the_same_words(names, tmp_path):
    rows = np.random.default_rng(0).uniform(size=(50, 2))
    bounds = {"a": (0, 1), "b": (0, 1)} if names else (0, 1)
    detector = DPGridKNN(1, features=bounds, bins=4).fit(rows)
    loaded = load(detector.save(tmp_path / "m"))
    wrong = [np.zeros((2, 3)), [[0.0]], pd.DataFrame({"a": [0.1], "c": [0.2]}), pd.DataFrame({"b": [0.1], "a": [0.2]})]
    for points in wrong if names else wrong[:2]:
        with pytest.raises(ValueError, match=r"2 features|feature names should match") as first:
            detector.outlier_scores(points)
        with pytest.raises(ValueError, match=r"2 features|feature names should match") as second:
            loaded.outlier_scores(points)
        assert str(first.value) == str(second.value)
    named = pd.DataFrame({"a": [0.1], "b": [0.2]})
    if not names:
        with pytest.warns(UserWarning, match="X has feature names, but DPGridKNN was fitted without"):
            loaded.outlier_scores(named)
    with pytest.raises(InvalidParameterError, match="n_jobs must be"):
        load(tmp_path / "m.dpo", n_jobs=0)
