"""Old names of arguments are accepted until version 1.0, wherever a user may give them."""

import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid
from sklearn.pipeline import make_pipeline

from dpoutlier import KNN, DPForest, DPGridKNN, DPMarginals, Forest, GridKNN, Marginals, detector

OLD = {"bounds": (0, 1), "n_hint": 500}
NEW = {"features": (0, 1), "n_rows_hint": 500}


@pytest.mark.parametrize("kind", [DPForest, DPMarginals, DPGridKNN])
def test_constructors_take_old_names_and_keep_new_ones(kind):
    with pytest.warns(FutureWarning, match="is now called") as caught:
        old = kind(1, **OLD)
    assert {str(one.message).split()[0] for one in caught} == {"bounds", "n_hint"}
    assert all(one.filename == __file__ for one in caught)
    assert repr(old) == repr(kind(1, **NEW)) == repr(clone(old))


@pytest.mark.parametrize("kind", [KNN, Forest, Marginals, GridKNN])
def test_twins_take_old_names(kind):
    with pytest.warns(FutureWarning, match="bounds is now called features"):
        assert kind(bounds=(0, 1)).features == (0, 1)


def test_old_words_for_counts_and_for_an_estimate_are_known():
    with pytest.warns(FutureWarning, match="holder is now called counts"):
        assert DPGridKNN(1, holder="keyed").counts == "keyed"
    with pytest.warns(FutureWarning, match="n_hint is now called n_rows_hint"):
        assert DPForest(1, n_hint="buy").n_rows_hint == "estimate"
    with pytest.warns(FutureWarning, match="n_hint is now called n_rows_hint"):
        assert detector(epsilon=1, features=(0, 1), n_hint=7).n_rows_hint == 7


def test_set_params_takes_old_names_alone_and_through_a_pipeline():
    one = DPForest(1)
    with pytest.warns(FutureWarning, match="is now called") as caught:
        assert one.set_params(**OLD) is one
    assert all(found.filename == __file__ for found in caught)
    assert (one.features, one.n_rows_hint) == ((0, 1), 500)
    pipeline = make_pipeline(DPForest(1))
    with pytest.warns(FutureWarning, match="n_hint is now called n_rows_hint"):
        found = [pipeline.set_params(**each)[-1].n_rows_hint for each in ParameterGrid({"dpforest__n_hint": [5, 6]})]
    assert found == [5, 6]
    assert pipeline.get_params()["dpforest__n_rows_hint"] == 6


def test_both_names_at_once_are_refused():
    with pytest.raises(TypeError, match="bounds is the old name of features: give features only"):
        DPForest(1, bounds=(0, 1), features=(0, 2))
    with pytest.raises(TypeError, match="n_hint is the old name of n_rows_hint"):
        DPForest(1).set_params(n_hint=1, n_rows_hint=2)


def test_a_name_that_never_was_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'limits'"):
        DPForest(1, limits=(0, 1))
    with pytest.raises(ValueError, match="Invalid parameter 'limits'"):
        DPForest(1).set_params(limits=(0, 1))
