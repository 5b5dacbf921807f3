"""Public trees: what the definition says, the same on every machine and version, for ever."""

import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.trees import Trees, trees_by_rule


@st.composite
def trees_with_points(draw):
    """A small forest, and points anywhere, at its cuts and beside them."""
    trees = Trees(
        n_features=draw(st.integers(1, 6)),
        n_trees=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 6)),
        subspace=tuple(draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))),
        seed=draw(st.integers(0, 2**64 - 1)),
    )
    cuts = trees.arrays().cut.tolist()
    edge = st.sampled_from(cuts).flatmap(lambda cut: st.integers(-1, 1).map(lambda off: cut + off))
    coordinate = st.one_of(edge, st.integers(0, 2**32 - 1), st.sampled_from([0, 2**32 - 1]))
    coordinate = coordinate.map(lambda p: min(max(p, 0), 2**32 - 1))
    points = draw(st.lists(st.tuples(*[coordinate] * trees.n_features), min_size=1, max_size=5))
    return trees, np.array(points, np.uint32)


def naive_leaves(trees: Trees, point):
    first = 0
    hands = naive.deal_features(trees.seed, trees.sizes, trees.n_features)
    for t, (depth, hand) in enumerate(zip(trees.depths, hands)):
        yield first + naive.tree_leaf([int(p) for p in point], trees.seed, t, depth, hand)
        first += 2**depth


@settings(max_examples=150)
@given(trees_with_points())
def test_leaves_are_those_of_the_definition(drawn):
    trees, points = drawn
    expected = [list(naive_leaves(trees, point)) for point in points]
    ids = trees.cells(points)
    assert ids.shape == (len(points), trees.n_trees, 2)
    assert ids[:, :, 0].max() == 0
    assert ids[:, :, 1].tolist() == expected


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 3000])
def test_tallies_and_sums_of_terms_are_those_of_the_leaves(n, order):
    trees = Trees(n_features=7, n_trees=5, depth=9, subspace=(2, 4, 8), seed=3)
    rng = np.random.default_rng(n)
    points = np.asarray(rng.integers(0, 2**32, (n, 7), dtype=np.uint32), order=order)
    leaves = trees.cells(points)[:, :, 1].astype(np.int64)
    counters, terms = np.zeros(trees.n_cells, np.int64), rng.integers(-(2**40), 2**40, trees.n_cells)
    trees.tally(points, counters)
    assert (counters == np.bincount(leaves.ravel(), minlength=trees.n_cells)).all()
    out = np.arange(n)
    trees.add_terms(points, terms, out)
    assert (out == np.arange(n) + terms[leaves].sum(axis=1)).all()


def digest(trees: Trees) -> str:
    arrays = trees.arrays()
    hasher = hashlib.sha256()
    for array, dtype in ((arrays.first, "<i8"), (arrays.depth, "<i8"), (arrays.feature, "<i8"), (arrays.cut, "<u4")):
        hasher.update(np.ascontiguousarray(array, dtype).tobytes())
    return hasher.hexdigest()


GOLDEN = {
    Trees(3, 2, 4): "3dadbae190d14d3bd9e6e41f5869eb6a9646d035cfff7e5c68b1c21ba5e20bbf",
    Trees(30, 32, 14): "f5f668a8101cef8308d921c44992b39cfd842540baff35657c47b43ee5dc7ed0",
    Trees(100, 32, 14, (4,), 7): "8d3057d9cfd547c04a5843407bc1a0cdcec27c4abcfd502d5d08812b58ba5174",
    Trees(1, 5, 3, (1,), 2**64 - 1): "ee3905248b847a26c41ede20e0a35adc84b3d44b79016cbed1dabc556d161ba5",
    Trees(9, 20, 9, (2, 4, 8), 1): "3887d5cef0ac98bc72f0122ab19f3e2f31dd571d84778efa330c250ee2a2af9e",
}


@pytest.mark.parametrize("trees", GOLDEN, ids=repr)
def test_the_trees_of_a_seed_are_frozen(trees):
    """A model file stores the seed alone: other trees from it would make every published forest wrong."""
    assert digest(trees) == GOLDEN[trees]


def test_some_cuts_in_the_open():
    arrays = Trees(3, 2, 4).arrays()
    assert arrays.feature.tolist() == [[0, 2, 1, 0], [2, 0, 1, 2]]
    assert arrays.cut[:5].tolist() == [0, 2374826322, 1921995794, 1921995794, 1595430821]


def test_cuts_lie_in_the_middle_third_and_levels_run_through_all_features():
    trees = Trees(n_features=10, n_trees=12, depth=12, subspace=(2, 3, 4, 16), seed=5)
    arrays = trees.arrays()
    assert trees.sizes == (2, 3, 4, 10) * 3
    assert trees.depths == (6, 9, 12, 12) * 3
    for t, (depth, size) in enumerate(zip(trees.depths, trees.sizes)):
        levels = arrays.feature[t, :depth].tolist()
        assert len(set(levels)) == size
        for start in range(0, depth - size + 1, size):
            assert len(set(levels[start : start + size])) == size  # each feature once in each round
        root = arrays.cut[arrays.first[t] + 1] / 2**32
        assert 0.35 <= root < 0.65
    roots = arrays.cut[arrays.first + 1]
    assert len(set(roots.tolist())) == trees.n_trees


def test_a_tree_is_a_small_grid():
    """A feature's cuts do not depend on the other features: each tree has at most 2**levels - 1 of them for each feature."""
    trees = Trees(n_features=8, n_trees=6, depth=11, seed=2)
    arrays = trees.arrays()
    for t, depth in enumerate(trees.depths):
        for j in set(arrays.feature[t, :depth].tolist()):
            levels = np.flatnonzero(arrays.feature[t, :depth] == j)
            cuts = {
                int(arrays.cut[arrays.first[t] + node])
                for level in levels
                for node in range(2**level, 2 ** (level + 1))
            }
            assert len(cuts) == 2 ** len(levels) - 1


@pytest.mark.parametrize("trees", [Trees(5, 4, 7, (1, 3, 4), 1), Trees(3, 2, 2, (3,), 0)], ids=repr)
def test_coarser_counts_are_sums_over_one_feature(trees):
    """Against sums over all pairs of leaves whose boxes differ in that feature only, by points in each leaf."""
    rng = np.random.default_rng(0)
    counts = rng.integers(-5, 50, trees.n_cells)
    points = rng.integers(0, 2**32, (4000, trees.n_features), dtype=np.uint32)
    leaves = trees.cells(points)[:, :, 1].astype(int)
    arrays = trees.arrays()
    found = {(part.cells.start, k): part for k, part in enumerate(trees.coarser(counts))}
    places = iter(sorted(found, key=lambda place: place[1]))
    for t, depth in enumerate(trees.depths):
        own = sorted(set(arrays.feature[t, :depth].tolist()))
        for j in own if len(own) > 1 else ():
            part = found[next(places)]
            assert part.cells == slice(arrays.first[t], arrays.first[t] + 2**depth)
            assert part.among == len(own)
            for i in range(5):
                moved = np.repeat(points[i : i + 1], 4000, axis=0)
                moved[:, j] = points[:, j]  # anywhere in feature j
                others = set(trees.cells(moved)[:, t, 1].astype(int).tolist())
                assert len(others) == part.merged
                assert part.counts[leaves[i, t] - arrays.first[t]] == sum(counts[other] for other in others)
    assert next(places, None) is None


@pytest.mark.parametrize(("n_features", "subspace"), [(10, (4,)), (7, (2, 4, 8)), (3, (4,)), (30, (1,)), (100, (4,))])
def test_features_are_dealt_evenly(n_features, subspace):
    """After any number of trees two features were used equally often, or one of them once more."""
    trees = Trees(n_features, 40, 5, subspace, 11)
    arrays, used = trees.arrays(), np.zeros(n_features, int)
    for t, (depth, size) in enumerate(zip(trees.depths, trees.sizes)):
        own = naive.deal_features(trees.seed, trees.sizes, n_features)[t]
        assert len(set(own)) == size
        assert set(arrays.feature[t, :depth].tolist()) <= set(own)
        used[own] += 1
        assert used.max() - used.min() <= 1


def test_other_seeds_are_other_trees():
    assert len({digest(Trees(5, 3, 6, seed=seed)) for seed in range(20)}) == 20


def test_a_row_lies_in_one_leaf_of_each_tree():
    trees: Partition = Trees(4, 6, 5, (2, 4))
    assert trees.cells_per_row == 6
    leaves = trees.cells(np.random.default_rng(0).integers(0, 2**32, (200, 4), dtype=np.uint32))[:, :, 1]
    first = np.append(trees.arrays().first, trees.n_cells)
    for t in range(6):
        assert (leaves[:, t] >= first[t]).all()
        assert (leaves[:, t] < first[t + 1]).all()


@pytest.mark.parametrize(
    ("n_rows", "epsilon", "expected"),
    [
        (1, 0.01, (2, 3)),
        (100, 0.1, (2, 4)),
        (300, 1, (9, 8)),
        (1000, 1, (16, 9)),
        (1000, 2, (22, 10)),
        (5000, 0.5, (25, 11)),
        (10**5, 1, (32, 14)),
        (10**9, 5, (32, 14)),
        (1000, 16, (32, 12)),
        (1000, float("inf"), (32, 12)),
    ],
)
def test_the_rule_for_trees_and_depth(n_rows, epsilon, expected):
    assert trees_by_rule(n_rows, epsilon) == expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_trees": 0}, "n_trees must be a whole number of at least 1"),
        ({"n_trees": 5000}, "n_trees must be a whole number of at least 1 and at most 4096"),
        ({"depth": 0}, "depth must be a whole number of at least 1"),
        ({"depth": 17}, "at most 16"),
        ({"subspace": ()}, "subspace must be a number of features"),
        ({"subspace": (2, 0)}, "subspace must be a whole number of at least 1"),
        ({"seed": -1}, "tree_seed must be a whole number from 0"),
        ({"seed": 2**64}, "tree_seed must be a whole number from 0"),
        ({"seed": 0.5}, "tree_seed must be a whole number from 0"),
        ({"n_trees": 4096, "depth": 12, "subspace": (8,)}, "have 16,777,216 leaves, and at most 4,194,304"),
    ],
)
def test_impossible_trees_are_refused(arguments, message):
    with pytest.raises(InvalidParameterError, match=message):
        Trees(**{"n_features": 8, "n_trees": 4, "depth": 5, **arguments})
