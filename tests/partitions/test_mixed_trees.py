"""Trees over features of any kind: what the definition says, the same on every machine and version, for ever."""

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.axes import Axis, plain
from dpoutlier.partitions.mixed_trees import MixedTrees, trees_of
from dpoutlier.partitions.trees import Trees, tree_sizes

KINDS = (Axis(), Axis(missing=True), Axis(2, unordered=True), Axis(9, unordered=True), Axis(5), Axis(11, missing=True))


@st.composite
def trees_with_points(draw):
    axes = draw(
        st.lists(st.sampled_from([*KINDS, Axis(1, unordered=True), Axis(3), Axis(40, unordered=True)]), max_size=5)
    )
    axes = (*axes, draw(st.sampled_from(KINDS[1:])))
    trees = MixedTrees(
        axes,
        n_trees=draw(st.integers(1, 4)),
        depth=draw(st.integers(1, 8)),
        subspace=tuple(draw(st.lists(st.integers(1, 6), min_size=1, max_size=2))),
        seed=draw(st.integers(0, 2**64 - 1)),
    )
    cuts = [cut for tree in trees.trees for axis in tree for cut in axis.cuts] or [0]
    edge = st.sampled_from(cuts).flatmap(lambda cut: st.integers(-1, 1).map(lambda off: cut + off))
    coordinate = st.one_of(edge, st.integers(0, 2**32 - 1), st.sampled_from([0, 2**32 - 1]))
    coordinate = coordinate.map(lambda p: min(max(p, 0), 2**32 - 1))
    points = draw(st.lists(st.tuples(*[coordinate] * len(axes)), min_size=1, max_size=5))
    return trees, np.array(points, np.uint32)


def naive_leaves(trees: MixedTrees, point):
    first = 0
    sizes = tree_sizes(trees.subspace, trees.n_trees, trees.n_features)
    for t, hand in enumerate(naive.deal_features(trees.seed, sizes, trees.n_features)):
        leaf, leaves = naive.mixed_leaf([int(p) for p in point], trees.seed, t, trees.depth, hand, trees.axes)
        yield first + leaf
        first += leaves


@settings(max_examples=300, deadline=None)
@given(trees_with_points())
def test_leaves_are_those_of_the_definition(drawn):
    trees, points = drawn
    ids = trees.cells(points)
    assert ids.shape == (len(points), trees.n_trees, 2)
    assert ids[:, :, 1].tolist() == [list(naive_leaves(trees, point)) for point in points]


@pytest.mark.parametrize("n", [0, 1, 511, 513, 3000])
def test_tallies_and_sums_of_terms_are_those_of_the_leaves(n):
    trees = MixedTrees(KINDS, n_trees=5, depth=9, subspace=(2, 4, 8), seed=3)
    rng = np.random.default_rng(n)
    points = rng.integers(0, 2**32, (n, len(KINDS)), dtype=np.uint32)
    leaves = trees.cells(points)[:, :, 1].astype(np.int64)
    counters, terms = np.zeros(trees.n_cells, np.int64), rng.integers(-(2**40), 2**40, trees.n_cells)
    trees.tally(points, counters)
    assert (counters == np.bincount(leaves.ravel(), minlength=trees.n_cells)).all()
    out = np.arange(n)
    trees.add_terms(points, terms, out)
    assert (out == np.arange(n) + terms[leaves].sum(axis=1)).all()


def digest(trees: MixedTrees) -> str:
    return hashlib.sha256(json.dumps(trees.trees, default=list).encode()).hexdigest()


GOLDEN = {
    MixedTrees(KINDS, 4, 9): "a66d38ddd8753dbac255b79fe6816b642297a013bada65b5a6d6e39bd3b2e079",
    MixedTrees(KINDS * 5, 32, 12, (4,), 7): "7570a47b69db59f7085909ec4e358ea1f5c0691e378cc28348c25907cc5c7321",
    MixedTrees(
        KINDS[1:], 20, 9, (2, 4, 8), 2**64 - 1
    ): "c128ec59d83ef36c53dad0cbbb1187f9bbef60faf771362f1bb3097d1323de41",
}


@pytest.mark.parametrize("trees", GOLDEN, ids=lambda trees: f"{trees.n_features} features, seed {trees.seed}")
def test_the_trees_of_a_seed_are_frozen(trees):
    """A model file stores the seed alone: other trees from it would make every published forest wrong."""
    assert digest(trees) == GOLDEN[trees]


@settings(deadline=None)
@given(trees_with_points(), st.integers(0, 2**32 - 1))
def test_a_feature_is_left_out_by_adding_up_its_cells(drawn, seed):
    trees, _ = drawn
    counts = np.random.default_rng(seed).integers(-5, 50, trees.n_cells)
    merges = []
    for part in trees.coarser(counts):
        merges.append((part.merged, part.among))
        own = counts[part.cells]
        assert part.counts.sum() == own.sum() * part.merged
        assert len(part.counts) == len(own)
    assert sorted(merges) == sorted(trees.merges())


def test_a_sum_without_a_feature_runs_over_the_rows_that_differ_in_it_alone():
    trees = MixedTrees((Axis(4, unordered=True), Axis(missing=True)), n_trees=1, depth=5, subspace=(2,), seed=1)
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 2**32, (500, 2), dtype=np.uint32)
    counters = np.zeros(trees.n_cells, np.int64)
    trees.tally(rows, counters)
    leaf = trees.cells(rows)[:, 0, 1].astype(np.int64)
    for part, axis, other in zip(trees.coarser(counters), trees.trees[0], trees.trees[0][::-1]):
        kept = np.unravel_index(leaf, trees.shapes[0])[[a.feature for a in trees.trees[0]].index(other.feature)]
        assert part.merged == axis.size
        assert (part.counts[leaf] == np.bincount(kept)[kept]).all()


def test_no_leaf_is_empty_for_want_of_a_level():
    """Levels are dealt out so that every cell has some, unlike cuts at random places."""
    trees = MixedTrees((Axis(3, unordered=True), Axis(5), Axis(7, unordered=True)), n_trees=8, depth=9, subspace=(3,))
    for tree in trees.trees:
        for axis in tree:
            assert set(axis.cells) == set(range(axis.size))


def test_each_tree_puts_unordered_levels_together_in_its_own_way():
    trees = MixedTrees((Axis(20, unordered=True), Axis()), n_trees=10, depth=2, subspace=(2,), seed=5)
    found = {axis.cells for tree in trees.trees for axis in tree if axis.cells}
    assert len(found) == 10
    ordered = MixedTrees((Axis(20), Axis()), n_trees=10, depth=2, subspace=(2,), seed=5)
    for tree in ordered.trees:
        for axis in tree:
            assert list(axis.cells) == sorted(axis.cells)


def test_plain_features_make_plain_trees():
    assert trees_of((Axis(),) * 3, 2, 4, 4, 0) == Trees(3, 2, 4)
    assert isinstance(trees_of((Axis(), Axis(2)), 2, 4, (2, 4), 0), MixedTrees)
    with pytest.raises(InvalidParameterError, match="axes must be of several kinds"):
        MixedTrees((Axis(),) * 3, 2, 4)
    assert plain((Axis(),)) == ()


def test_too_many_leaves_are_refused():
    with pytest.raises(InvalidParameterError, match="leaves, and at most 4,194,304 are possible"):
        MixedTrees((Axis(missing=True),) * 16, n_trees=4096, depth=12)
