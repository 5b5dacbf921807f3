"""Where most rows lie, by the released counts alone: true of the rows, and silent where the noise explains it."""

import numpy as np
import pandas as pd
import pytest

from dpoutlier import DPForest, DPGridKNN, DPMarginals, load
from dpoutlier.model.held import held_parts

pytestmark = pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")

ROWS = np.random.default_rng(0).normal(100, 10, (4000, 3))
SEEDED = {"tight_ranges": True, "unsafe_seed": 1}
MAKERS = {
    "forest": lambda **more: DPForest(1, n_rows_hint=4000, **more),
    "marginals": lambda **more: DPMarginals(1, bins=40, **more),
    "many bins": lambda **more: DPMarginals(1, bins=1000, **more),
    "grid": lambda **more: DPGridKNN(1, bins=10, **more),
}


def fitted(detector, rows=ROWS):
    return detector.fit(pd.DataFrame(rows, columns=["a", "b", "c"]))


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_part_holds_the_share_of_rows_that_is_said(make):
    model = fitted(make(features={"a": (0, 1000), "b": (-5000, 1000), "c": (60, 140)}, **SEEDED)).model_
    found = held_parts(model)
    assert set(found) == {0, 1}  # the third range is about right
    for j, part in found.items():
        share = ((ROWS[:, j] >= part.lower) & (ROWS[:, j] <= part.upper)).mean()
        assert 0.7 <= part.least <= share
        assert part.share <= 1.1 * share


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_noise_alone_says_nothing(make):
    for seed in range(20):
        model = fitted(make(features=(0, 1000), tight_ranges=True, unsafe_seed=seed), ROWS[:0]).model_
        assert held_parts(model) == {}


def test_levels_and_missing_values_have_no_range():
    table = pd.DataFrame({"sex": ["f", "m"] * 2000, "age": np.where(np.arange(4000) % 20, 30.0, np.nan)})
    detector = DPMarginals(
        1, features={"age": (0, 1000)}, categories={"sex": ["f", "m"]}, missing=["age"], tight_ranges=True
    )
    (part,) = held_parts(detector.fit(table).model_).values()
    assert part.lower <= 30 <= part.upper
    assert part.least <= 0.95 < part.share + 0.05  # of all rows, also of those without a value


def test_the_statement_says_it_wherever_it_is_shown(tmp_path):
    detector = DPMarginals(1, features={"a": (0, 1000), "b": (0, 1000), "c": (60, 140)}, bins=40)
    text = str(load(fitted(detector).save(tmp_path / "model")).privacy_statement())
    assert "lie between 75 and 125" in text
    assert "the range of a, b is far wider than where the rows lie" in " ".join(text.split())
