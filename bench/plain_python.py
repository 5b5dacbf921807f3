"""Algorithm 1 as the paper prints it, in plain Python: all cells within delta_max in a list, sorted, noise kept in a dictionary.

Our own version, written from the paper to have something to compare with; not the authors' code. It goes by the definitions of this
project where the paper leaves a choice (ties, depth in steps), so that its scores can be checked against the kernel's.
"""

import itertools

LATTICE = 2**32


def cost(position, bins, cell):
    home = position * bins // LATTICE
    point = min((2 * position + 1) * bins, (2 * home + 2) * LATTICE)
    return abs(point - (2 * cell + 1) * LATTICE) // (2 * bins)


def within(home, bins, depth):
    """All cells at most ``depth`` steps from home, as tuples."""
    features = range(len(bins))
    for moved in range(min(depth, len(bins)) + 1):
        for chosen in itertools.combinations(features, moved):
            ways = [[c for c in range(bins[j]) if 0 < abs(c - home[j]) <= depth - moved + 1] for j in chosen]
            for bins_of_chosen in itertools.product(*ways):
                if sum(abs(c - home[j]) for j, c in zip(chosen, bins_of_chosen, strict=True)) <= depth:
                    cell = list(home)
                    for j, c in zip(chosen, bins_of_chosen, strict=True):
                        cell[j] = c
                    yield tuple(cell)


def score(point, bins, noisy_count, k, depth):
    """Basic score of a lattice point with centroid distances, and the number of cells visited.

    ``noisy_count`` draws the noise of a cell; the dictionary keeps it, so that a cell's noise is realised once.
    """
    home = tuple(p * b // LATTICE for p, b in zip(point, bins, strict=True))
    rank = []
    for p, b, h in zip(point, bins, home, strict=True):
        ranked = sorted(range(b), key=lambda c, p=p, b=b, h=h: (cost(p, b, c), abs(c - h), c))
        rank.append({c: r for r, c in enumerate(ranked)})
    costs = [[cost(p, b, c) for c in range(b)] for p, b in zip(point, bins, strict=True)]
    cells = list(within(home, bins, depth))
    cells.sort(
        key=lambda cell: (sum(costs[j][c] for j, c in enumerate(cell)), [rank[j][c] for j, c in enumerate(cell)])
    )
    counts, gathered, visited = {}, 0, 0
    for cell in cells:
        visited += 1
        if cell not in counts:
            counts[cell] = noisy_count(cell)
        gathered += counts[cell]
        distance = sum(abs(c - h) / b for c, h, b in zip(cell, home, bins, strict=True))
        if gathered >= k:
            break
    return distance, visited
