"""The demonstration does what it says, and what it shows is a picture."""

import numpy as np
import pytest
from matplotlib.image import imread

from dpoutlier import load
from dpoutlier.cli.demo_run import demo_data, run_demo


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    return run_demo(tmp_path_factory.mktemp("demo"), "1")


def test_the_private_model_is_near_its_twin_and_far_from_the_control(result):
    private, twin, plain, control = result.rows
    assert abs(private.auroc - twin.auroc) < 0.05
    assert private.auroc > 0.85
    assert plain.auroc > 0.95
    # Twenty fits with a standard deviation of about 0.2 each: 0.3 is more than six standard errors.
    assert abs(control.auroc - 0.5) < 0.3


def test_the_split_is_the_papers(result):
    data = demo_data()
    assert (len(data.reference), result.n_inliers, result.n_outliers) == (285, 72, 212)


def test_the_picture_is_not_empty(result):
    pixels = imread(result.picture)
    assert pixels.shape[0] > 500
    assert pixels.shape[1] > 1500
    assert len(np.unique(pixels.reshape(-1, pixels.shape[-1]), axis=0)) > 500


def test_the_model_can_be_loaded_by_anyone(result):
    detector = load(result.model)
    assert detector.model_.publishable
    assert set(detector.predict(demo_data().points)) == {-1, 1}
