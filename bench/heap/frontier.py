"""Cells by (sum of costs, rank vector): lazy smallest-first enumeration with a heap.

A cell is its vector of ranks. It has exactly one parent, and at most three vectors follow when it leaves the heap. With
``last`` the last feature of non-zero rank:

- its *increment*: one rank more in ``last``;
- its *first child*: rank 1 in the cheapest feature after ``last``;
- its *next sibling*, if its rank in ``last`` is 1: rank 0 there, rank 1 in the next cheapest of the features that its
  parent could choose from.

"Cheapest" is by (cost of the first step, later feature first), which is the order of (sum of costs, rank vector) among
siblings. Each of the three comes later in the order than the cell itself, so the heap yields the exact order and
holds at most twice as many cells as were visited. Steps never fall from a cell to a follower, so a depth limit prunes.
"""

from typing import Any, NamedTuple

import numpy as np

from heap.jit import kernel
from heap.ranks import Ranks

__all__ = ["Frontier", "new_frontier", "order_features", "pop", "push_followers", "start"]

NONE = -1


class Frontier(NamedTuple):
    """Heap of slots, and the cells in the slots."""

    size: Any  # [cells in the heap, slots ever used]
    heap: Any  # slots, heap-ordered
    free: Any  # stack of slots that became free
    n_free: Any  # [height of that stack]
    cost: Any  # per slot: sum of costs
    depth: Any  # per slot: sum of steps
    last: Any  # per slot: last feature of non-zero rank, or NONE
    vector: Any  # (slot, feature): ranks
    order: Any  # features that have a second bin, cheapest first step first
    place: Any  # index of a feature in ``order``
    n_ordered: Any  # [length of ``order``]


@kernel
def new_frontier(capacity: int, features: int) -> Frontier:
    return Frontier(
        np.zeros(2, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.zeros(1, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty(capacity, np.int64),
        np.empty((capacity, features), np.int32),
        np.empty(features, np.int64),
        np.empty(features, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def grown(old: Frontier) -> Frontier:
    capacity = old.heap.shape[0]
    new = new_frontier(2 * capacity, old.vector.shape[1])
    new.size[:], new.n_free[:], new.n_ordered[:] = old.size, old.n_free, old.n_ordered
    new.heap[:capacity], new.free[:capacity] = old.heap, old.free
    new.cost[:capacity], new.depth[:capacity], new.last[:capacity] = old.cost, old.depth, old.last
    new.vector[:capacity] = old.vector
    new.order[:], new.place[:] = old.order, old.place
    return new


@kernel
def before(frontier: Frontier, a: int, b: int) -> bool:
    if frontier.cost[a] != frontier.cost[b]:
        return bool(frontier.cost[a] < frontier.cost[b])
    for j in range(frontier.vector.shape[1]):
        if frontier.vector[a, j] != frontier.vector[b, j]:
            return bool(frontier.vector[a, j] < frontier.vector[b, j])
    return False


@kernel
def sift_up(frontier: Frontier, child: int) -> None:
    heap = frontier.heap
    while child > 0:
        parent = (child - 1) // 2
        if not before(frontier, heap[child], heap[parent]):
            return
        heap[child], heap[parent] = heap[parent], heap[child]
        child = parent


@kernel
def sift_down(frontier: Frontier) -> None:
    heap, size, parent = frontier.heap, frontier.size[0], 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            return
        if child + 1 < size and before(frontier, heap[child + 1], heap[child]):
            child += 1
        if not before(frontier, heap[child], heap[parent]):
            return
        heap[child], heap[parent] = heap[parent], heap[child]
        parent = child


@kernel
def take_slot(frontier: Frontier) -> int:
    if frontier.n_free[0] > 0:
        frontier.n_free[0] -= 1
        return int(frontier.free[frontier.n_free[0]])
    frontier.size[1] += 1
    return int(frontier.size[1] - 1)


@kernel
def insert(frontier: Frontier, slot: int) -> None:
    frontier.heap[frontier.size[0]] = slot
    frontier.size[0] += 1
    sift_up(frontier, frontier.size[0] - 1)


@kernel
def pop(frontier: Frontier) -> int:
    """Slot of the first cell in the heap. It stays readable until ``push_followers`` frees it."""
    slot = frontier.heap[0]
    frontier.size[0] -= 1
    frontier.heap[0] = frontier.heap[frontier.size[0]]
    sift_down(frontier)
    return int(slot)


@kernel
def first_step(ranks: Ranks, feature: int) -> int:
    """Cost of the step from rank 0 to rank 1."""
    at = ranks.first[feature]
    return int(ranks.cost[at + 1] - ranks.cost[at])


@kernel
def order_features(ranks: Ranks, frontier: Frontier) -> None:
    """Insertion sort of the features by (cost of the first step, later feature first)."""
    length = 0
    for j in range(ranks.number.shape[0] - 1, -1, -1):
        if ranks.number[j] < 2:
            continue
        gap = first_step(ranks, j)
        i = length
        while i > 0:
            other = frontier.order[i - 1]
            if first_step(ranks, other) <= gap:
                break
            frontier.order[i] = other
            i -= 1
        frontier.order[i] = j
        length += 1
    for i in range(length):
        frontier.place[frontier.order[i]] = i
    frontier.n_ordered[0] = length


@kernel
def start(ranks: Ranks, frontier: Frontier) -> None:
    """Put the home cell, rank 0 everywhere, into an empty heap."""
    frontier.size[:], frontier.n_free[0] = 0, 0
    order_features(ranks, frontier)
    slot = take_slot(frontier)
    frontier.vector[slot] = 0
    frontier.cost[slot] = 0
    for j in range(ranks.number.shape[0]):
        frontier.cost[slot] += ranks.cost[ranks.first[j]]
    frontier.depth[slot], frontier.last[slot] = 0, NONE
    insert(frontier, slot)


@kernel
def next_choice(frontier: Frontier, after_place: int, after_feature: int) -> int:
    """The cheapest feature past ``after_place`` in the order whose index is above ``after_feature``, or NONE."""
    for i in range(after_place + 1, frontier.n_ordered[0]):
        if frontier.order[i] > after_feature:
            return int(frontier.order[i])
    return NONE


@kernel
def push_changed(frontier: Frontier, ranks: Ranks, origin: int, feature: int, rank: int, max_depth: int) -> None:
    """Push the cell of slot ``origin`` with another rank in ``feature``, unless that is too deep."""
    old, new = ranks.first[feature] + frontier.vector[origin, feature], ranks.first[feature] + rank
    depth = frontier.depth[origin] + ranks.steps[new] - ranks.steps[old]
    if depth > max_depth:
        return
    slot = take_slot(frontier)
    frontier.vector[slot] = frontier.vector[origin]
    frontier.vector[slot, feature] = rank
    frontier.cost[slot] = frontier.cost[origin] + ranks.cost[new] - ranks.cost[old]
    frontier.depth[slot] = depth
    frontier.last[slot] = feature
    insert(frontier, slot)


@kernel
def push_followers(frontier: Frontier, ranks: Ranks, slot: int, max_depth: int) -> Frontier:
    """Push what follows the cell of ``slot`` and free the slot. Returns the frontier, larger if need be."""
    if frontier.size[1] + 3 > frontier.heap.shape[0]:
        frontier = grown(frontier)
    last = frontier.last[slot]
    child = next_choice(frontier, -1, last)
    if child != NONE:
        push_changed(frontier, ranks, slot, child, 1, max_depth)
    if last != NONE:
        rank = frontier.vector[slot, last]
        if rank + 1 < ranks.number[last]:
            push_changed(frontier, ranks, slot, last, rank + 1, max_depth)
        if rank == 1:
            previous = last - 1
            while previous >= 0 and frontier.vector[slot, previous] == 0:
                previous -= 1
            sibling = next_choice(frontier, frontier.place[last], previous)
            if sibling != NONE:
                # The slot is not read again, so it may become the parent: rank 0 in ``last``, one step less.
                frontier.vector[slot, last] = 0
                frontier.cost[slot] -= first_step(ranks, last)
                frontier.depth[slot] -= ranks.steps[ranks.first[last] + 1]
                push_changed(frontier, ranks, slot, sibling, 1, max_depth)
    frontier.free[frontier.n_free[0]] = slot
    frontier.n_free[0] += 1
    return frontier
