"""Public trees: a row lies in the leaf of each tree that the definition says."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axis, plain
from dpoutlier.partitions import trees as trees_module
from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.grow import grow
from dpoutlier.partitions.trees import Trees, trees_by_rule

KINDS = (Axis(), Axis(missing=True), Axis(2, unordered=True), Axis(9, unordered=True), Axis(5), Axis(11, missing=True))
MIXED = Trees(6, n_trees=5, depth=9, subspace=(2, 4, 8), seed=3, axes=KINDS)
PLAIN = Trees(n_features=7, n_trees=5, depth=9, subspace=(2, 4, 8), seed=3)


@st.composite
def forests(draw, *, any_kind: bool):
    """A small forest, over features of any kind or plain ones alone."""
    one = st.sampled_from([*KINDS, Axis(1, unordered=True), Axis(3), Axis(40, unordered=True)])
    axes = (*draw(st.lists(one if any_kind else st.just(Axis()), max_size=5)), Axis(missing=any_kind))
    return Trees(
        len(axes),
        n_trees=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 8)),
        subspace=tuple(draw(st.lists(st.integers(1, 8), min_size=1, max_size=3))),
        seed=draw(st.integers(0, 2**64 - 1)),
        axes=plain(axes),
    )


@st.composite
def points_of(draw, trees: Trees):
    """Points anywhere, at cuts and beside them."""
    cuts = [cut for tree in trees.members for axis in tree.axes for cut in axis.cuts] or [0]
    edge = st.sampled_from(cuts).flatmap(lambda cut: st.integers(-1, 1).map(lambda off: cut + off))
    coordinate = st.one_of(edge, st.integers(0, 2**32 - 1), st.sampled_from([0, 2**32 - 1]))
    coordinate = coordinate.map(lambda p: min(max(p, 0), 2**32 - 1))
    points = draw(st.lists(st.tuples(*[coordinate] * trees.n_features), min_size=1, max_size=5))
    return np.array(points, np.uint32)


def naive_leaves(trees: Trees, point):
    """The leaf of each tree: by the path down a tree of plain features, else by the cell in each of its features."""
    first, position = 0, [int(p) for p in point]
    hands = naive.deal_features(trees.seed, trees.sizes, trees.n_features)
    for t, (depth, hand) in enumerate(zip(trees.depths, hands)):
        if trees.axes:
            leaf, leaves = naive.mixed_leaf(position, trees.seed, t, trees.depth, hand, trees.axes)
        else:
            leaf, leaves = naive.tree_leaf(position, trees.seed, t, depth, hand), 2**depth
        yield first + leaf
        first += leaves


def check_leaves(trees: Trees, points):
    ids = trees.cells(points)
    assert ids.shape == (len(points), trees.n_trees, 2)
    assert ids[:, :, 0].max() == 0
    assert ids[:, :, 1].tolist() == [list(naive_leaves(trees, point)) for point in points]


@settings(max_examples=150)
@given(st.data())
def test_leaves_over_plain_features_are_those_of_the_definition(data):
    trees = data.draw(forests(any_kind=False))
    assert trees.name == "trees"
    check_leaves(trees, data.draw(points_of(trees)))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_leaves_over_features_of_any_kind_are_those_of_the_definition(data):
    trees = data.draw(forests(any_kind=True))
    assert trees.name == "mixed-trees"
    check_leaves(trees, data.draw(points_of(trees)))


@pytest.mark.parametrize("trees", [PLAIN, MIXED], ids=lambda trees: trees.name)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 3000])
def test_tallies_and_sums_of_terms_are_those_of_the_leaves(n, order, trees):
    rng = np.random.default_rng(n)
    points = np.asarray(rng.integers(0, 2**32, (n, trees.n_features), dtype=np.uint32), order=order)
    leaves = trees.cells(points)[:, :, 1].astype(np.int64)
    counters, terms = np.zeros(trees.n_cells, np.int64), rng.integers(-(2**40), 2**40, trees.n_cells)
    trees.tally(points, counters)
    assert (counters == np.bincount(leaves.ravel(), minlength=trees.n_cells)).all()
    out = np.arange(n)
    trees.add_terms(points, terms, out)
    assert (out == np.arange(n) + terms[leaves].sum(axis=1)).all()


@pytest.mark.parametrize(
    "trees", [Trees(5, 4, 7, (1, 3, 4), 1), Trees(3, 2, 2, (3,), 0), Trees(6, 4, 6, (1, 3), 1, KINDS)], ids=repr
)
def test_leaves_are_summed_over_one_feature(trees):
    """Against sums over all pairs of leaves whose boxes differ in that feature only, by points in each leaf."""
    rng = np.random.default_rng(0)
    counts = rng.integers(-5, 50, trees.n_cells)
    points = rng.integers(0, 2**32, (4000, trees.n_features), dtype=np.uint32)
    points[rng.random(points.shape) < 0.1] = 2**32 - 1  # the position of missing values
    leaves = trees.cells(points)[:, :, 1].astype(int)
    for t, tree in enumerate(trees.members):
        features = [axis.feature for axis in tree.axes if len(tree.axes) > 1]
        for j, (found, merged) in zip(features, sums_of(tree, counts), strict=True):
            for i in range(5):
                moved = np.repeat(points[i : i + 1], 4000, axis=0)
                moved[:, j] = points[:, j]  # anywhere in feature j
                others = set(trees.cells(moved)[:, t, 1].astype(int).tolist())
                assert len(others) == merged
                assert found[leaves[i, t] - tree.first] == sum(counts[other] for other in others)


def sums_of(tree, counts):
    """For each feature of a tree: the sum for every cell, and over how many cells it runs."""
    cube = counts[tree.cells].reshape(tree.shape)
    for axes in tree.sums:
        sums = cube.sum(axis=axes, keepdims=True)
        yield np.broadcast_to(sums, tree.shape).reshape(-1), cube.size // sums.size


@settings(deadline=None)
@given(st.booleans().flatmap(lambda any_kind: forests(any_kind=any_kind)))
def test_sums_run_over_the_digits_of_each_feature_and_no_others(trees):
    for tree in trees.members:
        assert sorted(at for axes in tree.sums for at in axes) == (list(range(len(tree.shape))) if tree.sums else [])
        assert len(tree.sums) == (len(tree.axes) if len(tree.axes) > 1 else 0)


def test_a_sum_without_a_feature_runs_over_the_rows_that_differ_in_it_alone():
    trees = Trees(2, n_trees=1, depth=5, subspace=(2,), seed=1, axes=(Axis(4, unordered=True), Axis(missing=True)))
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**32, (500, 2), dtype=np.uint32)
    counters = np.zeros(trees.n_cells, np.int64)
    trees.tally(rows, counters)
    leaf, (tree,) = trees.cells(rows)[:, 0, 1].astype(np.int64), trees.members
    for (found, merged), axis, other in zip(sums_of(tree, counters), tree.axes, tree.axes[::-1], strict=True):
        kept = np.unravel_index(leaf, tree.shape)[[digit.feature for digit in tree.digits].index(other.feature)]
        assert merged == axis.size
        assert (found[leaf] == np.bincount(kept)[kept]).all()


def test_a_row_lies_in_one_leaf_of_each_tree():
    trees: Partition = Trees(4, 6, 5, (2, 4))
    assert trees.cells_per_row == 6
    leaves = trees.cells(np.random.default_rng(0).integers(0, 2**32, (200, 4), dtype=np.uint32))[:, :, 1]
    first = np.cumsum([0, *(2**depth for depth in trees.depths)])
    assert [tree.first for tree in trees.members] == first[:-1].tolist()
    assert trees.n_cells == first[-1]
    for t in range(6):
        assert (leaves[:, t] >= first[t]).all()
        assert (leaves[:, t] < first[t + 1]).all()


def test_plain_features_make_plain_trees():
    assert Trees.of((Axis(),) * 3, 2, 4, 4, 0) == Trees(3, 2, 4)
    assert Trees.of((Axis(), Axis(2)), 2, 4, (2, 4), 0) == Trees(2, 2, 4, (2, 4), axes=(Axis(), Axis(2)))
    for axes in [(Axis(),) * 3, (Axis(2),), (Axis(2),) * 4]:
        with pytest.raises(
            InvalidParameterError, match="axes must be one for each feature, or none where all are plain"
        ):
            Trees(3, 2, 4, axes=axes)
    assert plain((Axis(),)) == ()


@pytest.mark.parametrize("trees", [PLAIN, MIXED], ids=lambda trees: trees.name)
def test_what_a_file_holds_makes_the_same_trees(trees):
    content = trees.to_json()
    assert Trees.from_json(content) == trees
    described = ["axes"] if trees.axes else ["n_features"]
    assert list(content) == ["name", *described, "n_trees", "depth", "subspace", "seed"]


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


def test_too_many_leaves_or_levels_are_refused():
    with pytest.raises(InvalidParameterError, match="leaves, and at most 4,194,304 are possible"):
        Trees(16, n_trees=4096, depth=12, axes=(Axis(missing=True),) * 16)
    with pytest.raises(InvalidParameterError, match="would part up to 1,073,741,824 levels, and at most 33,554,432"):
        Trees(4, n_trees=4096, depth=12, axes=(Axis(2**16),) * 4)


def test_trees_are_grown_once_for_a_forest(monkeypatch):
    """However many forests there are: a server holds many, and asks them in turn."""
    grown = []
    monkeypatch.setattr(trees_module, "grow", lambda *given, **more: grown.append(given) or grow(*given, **more))
    forests = [Trees(3, 2, 4, (2,), seed) for seed in range(1000, 1040)]
    for _ in range(3):
        assert all(len(forest.members) == 2 for forest in forests)
    assert len(grown) == len(forests)
