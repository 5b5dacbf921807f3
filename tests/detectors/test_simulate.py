"""Planning: a simulation that needs no data, and says when there is nothing to hope for."""

import pytest

from dpoutlier.detectors.registry import DETECTOR_NAMES
from dpoutlier.detectors.simulate import MAX_SIMULATED, NOISE_ONLY, USEFUL, advise
from dpoutlier.exceptions import InvalidParameterError


@pytest.fixture(scope="module")
def easy():
    return advise(5000, 6, 2.0)


@pytest.fixture(scope="module")
def hopeless():
    return advise(100, 20, 0.01)


def test_it_says_what_will_be_fitted_and_how_it_compares(easy):
    assert easy.chosen == "forest"
    assert set(easy.outlooks) == set(DETECTOR_NAMES)
    for outlook in easy.outlooks.values():
        assert 0.4 < outlook.control < 0.6
        assert outlook.auroc > 0.7
        assert outlook.publishable
    assert easy.plain > 0.8


def test_noise_and_expected_counts_are_those_of_a_fit():
    tight = advise(5000, 6, 2.0, tight_ranges=True)
    forest, marginals, grid = (tight.outlooks[name] for name in ("forest", "marginals", "grid"))
    assert marginals.noise == pytest.approx(6 / 2, rel=1e-9)
    assert grid.noise == pytest.approx(1 / 2, rel=1e-9)
    assert forest.noise == pytest.approx(int(forest.partition.split()[0]) / 2, rel=1e-9)
    assert 5000 > marginals.expected > forest.expected > grid.expected > 0


def test_it_says_what_ranges_cost_that_are_too_wide(easy):
    chosen = easy.outlooks[easy.chosen].auroc
    for width, (as_fitted, declared) in easy.too_wide.items():
        assert as_fitted > chosen - 0.1, width
        assert declared < chosen - 0.2, width


@pytest.mark.slow
def test_the_useful_epsilon_is_one_at_which_it_is_useful(easy):
    assert easy.useful_epsilon is not None
    again = advise(5000, 6, easy.useful_epsilon)
    assert (
        again.part_of_the_way(again.outlooks[again.chosen]) >= USEFUL - 0.02
    )  # the trees of another epsilon differ a little


def test_what_is_all_noise_is_called_so(hopeless):
    for outlook in hopeless.outlooks.values():
        assert hopeless.part_of_the_way(outlook) < NOISE_ONLY
    assert hopeless.useful_epsilon is None or hopeless.useful_epsilon > 0.3


def test_more_rows_than_are_simulated_scale_noise_and_counts():
    many, few = advise(10 * MAX_SIMULATED, 3, 0.05), advise(MAX_SIMULATED, 3, 0.5)
    for name in ("forest", "marginals", "grid"):
        assert many.outlooks[name].noise == pytest.approx(10 * few.outlooks[name].noise, rel=1e-6)
        assert many.outlooks[name].expected == pytest.approx(10 * few.outlooks[name].expected)
        assert many.outlooks[name].auroc == few.outlooks[name].auroc


def test_a_grid_of_too_many_features_cannot_be_fitted():
    advice = advise(200, 130, 1.0)
    assert advice.outlooks["grid"] is None
    assert advice.outlooks["forest"] is not None


def test_arguments_reach_the_detectors():
    once = advise(500, 4, 1.0, tight_ranges=True)
    twice = advise(500, 4, 1.0, tight_ranges=True, neighbours="replace-one")
    assert twice.outlooks["marginals"].noise == pytest.approx(2 * once.outlooks["marginals"].noise, rel=1e-9)


@pytest.mark.slow
def test_the_useful_epsilon_is_that_of_the_detector_that_was_asked_for():
    forest, grid = (advise(2000, 10, 1.0, name=name) for name in ("forest", "grid"))
    assert (forest.chosen, grid.chosen) == ("forest", "grid")
    assert forest.useful_epsilon is not None
    assert grid.useful_epsilon is None or grid.useful_epsilon > forest.useful_epsilon


def test_so_many_rows_that_a_grid_cannot_be_simulated():
    advice = advise(10**12, 2, 1.0, name="grid", tight_ranges=True)
    assert [round(advice.outlooks[name].noise, 6) for name in ("forest", "marginals", "grid")] == [32, 2, 1]
    assert not advice.outlooks["grid"].judged
    assert advice.outlooks["forest"].judged
    assert advice.useful_epsilon is None


@pytest.mark.slow
def test_a_tiny_epsilon_and_many_features_are_no_error():
    assert advise(5000, 6, 1e-7).outlooks["forest"].noise > 1e7
    assert advise(10**5, 3000, 1.0).outlooks["grid"] is None


def test_where_even_plain_knn_finds_nothing_no_epsilon_is_useful():
    assert advise(1, 1, 1.0).useful_epsilon is None


def test_no_rows_are_refused():
    with pytest.raises(InvalidParameterError, match="n_rows must be"):
        advise(0, 4, 1.0)
