"""Plans for features as they are declared: what is simulated is what a fit would make."""

import pytest

from dpoutlier import Bounds, Category, DPForest, PrivateBounds
from dpoutlier.detectors.simulate import advise

KINDS = {
    "age": (0, 120),
    "income": PrivateBounds(share=0.2, outer=(0, 1e7)),
    "sex": Category(["f", "m"]),
    "stage": Category([1, 2, 3, 4], ordered=True),
    "ward": Category([f"ward {i}" for i in range(20)]),
}


@pytest.fixture(scope="module")
def advice():
    return advise(3000, len(KINDS), 1.0, bounds=Bounds.of(KINDS, missing=["age"]))


def test_the_partition_is_that_of_a_fit(advice):
    fitted = DPForest(1, features=KINDS, missing=["age"], n_rows_hint=3000).fit([[30, 1e4, "f", 1, "ward 3"]]).model_
    assert advice.outlooks["forest"].cells == fitted.partition.n_cells
    paid = {charge.purpose: charge for charge in fitted.charges}
    assert advice.outlooks["forest"].noise == pytest.approx(paid["counts"].noise.scale, rel=1e-6)


def test_private_bounds_and_levels_cost_what_they_cost(advice):
    plain = advise(3000, len(KINDS), 1.0)
    assert advice.outlooks["marginals"].noise == pytest.approx(plain.outlooks["marginals"].noise / 0.8)
    assert advice.plain == plain.plain
    assert 0.6 < advice.outlooks["forest"].auroc <= plain.outlooks["forest"].auroc + 0.05
    assert abs(advice.outlooks["forest"].control - 0.5) < 0.2
