"""Hypothesis strategies: grids, and positions that like borders, middles and ties."""

from hypothesis import strategies as st

LATTICE = 2**32


def coordinate(bins: int) -> st.SearchStrategy[int]:
    """A lattice position: anywhere, at an edge or a middle of a bin, or one beside it."""
    edges = st.integers(0, 2 * bins).flatmap(
        lambda i: st.integers(-2, 2).map(lambda off: i * LATTICE // (2 * bins) + off)
    )
    anywhere = st.integers(0, LATTICE - 1)
    return st.one_of(edges, edges, anywhere).map(lambda p: min(max(p, 0), LATTICE - 1))


@st.composite
def grids_with_points(draw, max_features: int = 5, most_cells: int = 700):
    """(bins, positions): 1..5 features of 1..6 bins each, and a few points."""
    d = draw(st.integers(1, max_features))
    some = st.integers(1, 6)
    bins = draw(st.one_of(some.map(lambda b: (b,) * d), st.tuples(*[some] * d)))
    while (product := _product(bins)) > most_cells:
        bins = tuple(b - 1 if b == max(bins) else b for b in bins)
        assert _product(bins) < product
    points = draw(st.lists(st.tuples(*(coordinate(b) for b in bins)), min_size=1, max_size=4))
    if draw(st.booleans()):  # a constant column, and the same offset everywhere: ties
        points = [tuple(p * 0 + points[0][0] for p in point) for point in points]
    return bins, points


@st.composite
def kinds_with_points(draw, max_features: int = 4, most_cells: int = 500):
    """(bins, axes, positions) of features of all kinds: numbers, ordered and unordered levels, with missing cells or without."""
    d = draw(st.integers(1, max_features))
    some = st.integers(1, 5)
    bins = draw(st.tuples(*[some] * d))
    flags = draw(st.tuples(*[st.tuples(st.booleans(), st.booleans(), st.booleans())] * d))
    axes = [
        (b, True, False) if unordered else (b * ordered, False, missing)
        for b, (ordered, unordered, missing) in zip(bins, flags)
    ]
    while _product(b + axis[2] for b, axis in zip(bins, axes)) > most_cells:
        bins = tuple(max(b - 1, 1) for b in bins)
        axes = [(b if axis[0] else 0, *axis[1:]) for b, axis in zip(bins, axes)]
    places = [_place(b, axis) for b, axis in zip(bins, axes)]
    return bins, axes, draw(st.lists(st.tuples(*places), min_size=1, max_size=4))


def _place(bins: int, axis) -> st.SearchStrategy[int]:
    levels, _, missing = axis
    middle = st.integers(0, bins - 1).map(lambda i: (2 * i + 1) * LATTICE // (2 * bins))
    anywhere = coordinate(bins).map(lambda p: min(p, LATTICE - 1 - missing))
    known = middle if levels else anywhere
    return st.one_of(known, known, st.just(LATTICE - 1)) if missing else known


def _product(numbers) -> int:
    result = 1
    for number in numbers:
        result *= number
    return result


def rules():
    return st.fixed_dictionaries(
        {
            "k": st.integers(1, 12),
            "weighted": st.booleans(),
            "distance": st.sampled_from(["cell", "point"]),
            "max_depth": st.one_of(st.none(), st.integers(0, 6)),
            "max_cells": st.one_of(st.just(100_000), st.integers(1, 40)),
            "exhausted": st.sampled_from(["outlying", "as-printed"]),
        }
    )
