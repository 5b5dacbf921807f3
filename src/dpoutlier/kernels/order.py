"""Cells of a window by cost: first into buckets, then, only where the order matters, within a few of them."""

from typing import Any

from dpoutlier.kernels.jit import inlined
from dpoutlier.kernels.window import Window

BUCKETS = 1 << 12
SHORT = 24


@inlined
def into_buckets(found: Window, n: Any, start: Any, width: Any, wide: Any, starts: Any, out: Window) -> Any:
    """Move n cells, bucket by bucket and within a bucket as they came. Returns (number of buckets).

    Bucket i of ``out`` begins at ``starts[i]``. ``width`` is how far costs go beyond ``start``.
    """
    buckets, shift = 1, 0
    while buckets < BUCKETS and 4 * buckets < n:
        buckets *= 2
    while ((width - 1) >> shift) >= buckets:
        shift += 1
    for i in range(buckets + 1):
        starts[i] = 0
    for i in range(n):
        starts[((found.cost[i] - start) >> shift) + 1] += 1
    for i in range(1, buckets + 1):
        starts[i] += starts[i - 1]
    for i in range(n):
        bucket = (found.cost[i] - start) >> shift
        to = starts[bucket]
        starts[bucket] = to + 1
        out.cost[to], out.low[to], out.length[to] = found.cost[i], found.low[i], found.length[i]
        if wide:
            out.high[to] = found.high[i]
    for i in range(buckets, 0, -1):
        starts[i] = starts[i - 1]
    starts[0] = 0
    return buckets


@inlined
def sort_few(cost: Any, n: Any, order: Any) -> None:
    """Indices 0..n - 1 into ``order``, by cost, and as they came where costs are equal: by insertion."""
    for i in range(n):
        key, j = cost[i], i
        while j > 0 and cost[order[j - 1]] > key:
            order[j] = order[j - 1]
            j -= 1
        order[j] = i


@inlined
def sort_stably(cost: Any, first: Any, last: Any, order: Any, spare: Any) -> None:
    """Indices first..last - 1 into order[: last - first], by cost, and as they came where costs are equal."""
    n = last - first
    for i in range(n):
        order[i] = first + i
    # Runs of SHORT by insertion, then runs merged two by two.
    for begin in range(0, n, SHORT):
        for i in range(begin + 1, min(begin + SHORT, n)):
            item = order[i]
            key, j = cost[item], i
            while j > begin and cost[order[j - 1]] > key:
                order[j] = order[j - 1]
                j -= 1
            order[j] = item
    run = SHORT
    while run < n:
        for begin in range(0, n, 2 * run):
            middle, end = min(begin + run, n), min(begin + 2 * run, n)
            left, right = begin, middle
            for i in range(begin, end):
                if right >= end or (left < middle and cost[order[left]] <= cost[order[right]]):
                    spare[i] = order[left]
                    left += 1
                else:
                    spare[i] = order[right]
                    right += 1
        for i in range(n):
            order[i] = spare[i]
        run *= 2
