"""Trees from a seed: what the definition says, the same on every machine and in every version."""

import hashlib
import json

import numpy as np
import pytest

import naive
from dpoutlier.features.axes import Axis
from dpoutlier.partitions.trees import Trees

KINDS = (Axis(), Axis(missing=True), Axis(2, unordered=True), Axis(9, unordered=True), Axis(5), Axis(11, missing=True))


def mixed(axes, *numbers):
    return Trees(len(axes), *numbers, axes=axes)


def features_of_levels(trees: Trees):
    """For each tree over plain features, the feature that each of its levels cuts."""
    return [[digit.feature for digit in tree.digits] for tree in trees.members]


def cuts_of_nodes(trees: Trees, t: int) -> list[int]:
    """The cut at each node of a tree over plain features, in heap order; entry 0 is none."""
    tree, levels = trees.members[t], features_of_levels(trees)[t]
    cuts, found = {axis.feature: axis.cuts for axis in tree.axes}, [0]
    for node in range(1, 2 ** len(levels)):
        level, own, k = node.bit_length() - 1, 0, 1
        own = levels[level]
        for above in range(level):
            if levels[above] == own:
                k = 2 * k + (node >> (level - above - 1) & 1)
        step = k.bit_length() - 1  # so often was the feature cut before
        left = (2 * (k - 2**step) + 1) * (len(cuts[own]) + 1) // 2 ** (step + 1) - 1
        found.append(cuts[own][left])
    return found


def digest(trees: Trees) -> str:
    """As it was made when trees were first frozen: of plain features node by node, else of cells feature by feature."""
    if trees.axes:
        axes = [[(axis.feature, axis.size, axis.cuts, axis.cells) for axis in tree.axes] for tree in trees.members]
        return hashlib.sha256(json.dumps(axes, default=list).encode()).hexdigest()
    feature = np.zeros((trees.n_trees, max(trees.depths)), "<i8")
    for t, levels in enumerate(features_of_levels(trees)):
        feature[t, : len(levels)] = levels
    cuts = [cut for t in range(trees.n_trees) for cut in cuts_of_nodes(trees, t)]
    hasher = hashlib.sha256()
    for array, dtype in (
        ([tree.first for tree in trees.members], "<i8"),
        (trees.depths, "<i8"),
        (feature, "<i8"),
        (cuts, "<u4"),
    ):
        hasher.update(np.ascontiguousarray(array, dtype).tobytes())
    return hasher.hexdigest()


def digest_of_cells(trees: Trees) -> str:
    """Digest of the cells of points, with what each feature adds to a leaf's number."""
    points = np.random.default_rng(0).integers(0, 2**32, (300, trees.n_features), dtype=np.uint32)
    points[:2] = [[0], [2**32 - 1]]
    axes = [[(axis.feature, axis.levels, axis.cuts, axis.add) for axis in tree.axes] for tree in trees.members]
    content = json.dumps([[tree.first for tree in trees.members], axes, trees.cells(points)[:, :, 1].tolist()])
    return hashlib.sha256(content.encode()).hexdigest()


GOLDEN = {
    Trees(3, 2, 4): "3dadbae190d14d3bd9e6e41f5869eb6a9646d035cfff7e5c68b1c21ba5e20bbf",
    Trees(30, 32, 14): "f5f668a8101cef8308d921c44992b39cfd842540baff35657c47b43ee5dc7ed0",
    Trees(100, 32, 14, (4,), 7): "8d3057d9cfd547c04a5843407bc1a0cdcec27c4abcfd502d5d08812b58ba5174",
    Trees(1, 5, 3, (1,), 2**64 - 1): "ee3905248b847a26c41ede20e0a35adc84b3d44b79016cbed1dabc556d161ba5",
    Trees(9, 20, 9, (2, 4, 8), 1): "3887d5cef0ac98bc72f0122ab19f3e2f31dd571d84778efa330c250ee2a2af9e",
    mixed(KINDS, 4, 9): "a66d38ddd8753dbac255b79fe6816b642297a013bada65b5a6d6e39bd3b2e079",
    mixed(KINDS * 5, 32, 12, (4,), 7): "7570a47b69db59f7085909ec4e358ea1f5c0691e378cc28348c25907cc5c7321",
    mixed(KINDS[1:], 20, 9, (2, 4, 8), 2**64 - 1): "c128ec59d83ef36c53dad0cbbb1187f9bbef60faf771362f1bb3097d1323de41",
}
GOLDEN_CELLS = {
    Trees(3, 2, 4): "8fc09fb9baf1449879ad45be669c063abe1fd702831f611f0897a44b223d20c3",
    Trees(100, 32, 14, (4,), 7): "13eff4593c42a28fb2f193def92709603e6d5a71b12b143a5743d6af4f640359",
    Trees(9, 20, 9, (2, 4, 8), 1): "b72384af6362f7fc198d3d3dc978f20e13716ea0aeb9ef61dd3253e0dc66d441",
    Trees(5, 6, 2, (4,), 12345): "16f0d1adac65cb2fee9d505e490802e9ba2ab7b43934d73566ac572b9f8f362f",
    mixed(KINDS, 4, 9): "f593b5b8375a704016e03734ca094be6e7662f73129f87c4cde008872be20cb4",
    mixed(KINDS * 5, 32, 12, (4,), 7): "5a4f66a249abb37aacd28e913c046bc93e5ed8a8c098198aa69c1dba313438fb",
    mixed(KINDS[1:], 20, 9, (2, 4, 8), 2**64 - 1): "720473162f331c1a8e49075d49b2a9163c66fa7de103998b67a34012b3bba33d",
    mixed(KINDS, 6, 2, (4,), 12345): "09300b7214d7a1a62998f18c357d4f105f9a8d35acbf770ade27973e9350fe84",
}


def named(trees: Trees) -> str:
    return f"{trees.name}, {trees.n_features} features, seed {trees.seed}"


@pytest.mark.parametrize("trees", GOLDEN, ids=named)
def test_the_trees_of_a_seed_are_frozen(trees):
    """A model file stores the seed alone: other trees from it would make every published forest wrong."""
    assert digest(trees) == GOLDEN[trees]


@pytest.mark.parametrize("trees", GOLDEN_CELLS, ids=named)
def test_the_numbers_of_leaves_are_frozen(trees):
    assert digest_of_cells(trees) == GOLDEN_CELLS[trees]


def test_some_cuts_in_the_open():
    trees = Trees(3, 2, 4)
    assert features_of_levels(trees) == [[0, 2, 1, 0], [2, 0, 1, 2]]
    assert cuts_of_nodes(trees, 0)[:5] == [0, 2374826322, 1921995794, 1921995794, 1595430821]


def test_cuts_lie_in_the_middle_third_and_levels_run_through_all_features():
    trees = Trees(n_features=10, n_trees=12, depth=12, subspace=(2, 3, 4, 16), seed=5)
    assert trees.sizes == (2, 3, 4, 10) * 3
    assert trees.depths == (6, 9, 12, 12) * 3
    roots = []
    for t, (depth, size, levels) in enumerate(zip(trees.depths, trees.sizes, features_of_levels(trees))):
        assert len(levels) == depth
        assert len(set(levels)) == size
        for start in range(0, depth - size + 1, size):
            assert len(set(levels[start : start + size])) == size  # each feature once in each round
        roots.append(cuts_of_nodes(trees, t)[1])
        assert 0.35 <= roots[-1] / 2**32 < 0.65
    assert len(set(roots)) == trees.n_trees


def test_a_tree_is_a_small_grid():
    """A feature's cuts do not depend on the other features: each tree has at most 2**levels - 1 of them for each feature."""
    trees = Trees(n_features=8, n_trees=6, depth=11, seed=2)
    for tree, levels in zip(trees.members, features_of_levels(trees)):
        assert {axis.feature for axis in tree.axes} == set(levels)
        for axis in tree.axes:
            assert len(set(axis.cuts)) == 2 ** levels.count(axis.feature) - 1
            assert list(axis.cuts) == sorted(axis.cuts)


@pytest.mark.parametrize(("n_features", "subspace"), [(10, (4,)), (7, (2, 4, 8)), (3, (4,)), (30, (1,)), (100, (4,))])
def test_features_are_dealt_evenly(n_features, subspace):
    """After any number of trees two features were used equally often, or one of them once more."""
    trees, used = Trees(n_features, 40, 5, subspace, 11), np.zeros(n_features, int)
    dealt = naive.deal_features(trees.seed, trees.sizes, n_features)
    for own, size, levels in zip(dealt, trees.sizes, features_of_levels(trees)):
        assert len(set(own)) == size
        assert set(levels) <= set(own)
        used[own] += 1
        assert used.max() - used.min() <= 1


def test_other_seeds_are_other_trees():
    assert len({digest(Trees(5, 3, 6, seed=seed)) for seed in range(20)}) == 20


def test_no_leaf_is_empty_for_want_of_a_level():
    """Levels are dealt out so that every cell has some, unlike cuts at random places."""
    trees = mixed((Axis(3, unordered=True), Axis(5), Axis(7, unordered=True)), 8, 9, (3,))
    for tree in trees.members:
        for axis in tree.axes:
            assert set(axis.cells) == set(range(axis.size))


def test_each_tree_puts_unordered_levels_together_in_its_own_way():
    trees = mixed((Axis(20, unordered=True), Axis()), 10, 2, (2,), 5)
    found = {axis.cells for tree in trees.members for axis in tree.axes if axis.cells}
    assert len(found) == 10
    ordered = mixed((Axis(20), Axis()), 10, 2, (2,), 5)
    for tree in ordered.members:
        for axis in tree.axes:
            assert list(axis.cells) == sorted(axis.cells)
