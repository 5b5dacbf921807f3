"""Count the rows of an array on a grid, straight from its floats: one pass, four rows or four columns at a time.

``floor(floor((x - lower) * scale) * bins / 2**32)``, clipped to 0..bins - 1, is the bin of the position that ``features.lattice``
defines: for up to 2**21 bins the product is exact in a float, and so are sums of whole numbers below 2**53. A missing value falls
into bin 0.
"""

from typing import Any, NamedTuple

import numpy as np

from dpoutlier.kernels.jit import inlined, kernel, summing_kernel
from dpoutlier.kernels.positions import moved

BLOCK = 8192  # rows; a multiple of 4
LIST_BLOCK = 1 << 16  # more where each call takes four columns only
MAX_BINS = 1 << 21


class BinArrays(NamedTuple):
    """Per feature."""

    lower: Any
    scale: Any
    share: Any  # bins / 2**32
    last: Any  # bins - 1
    stride: Any  # what one bin more adds to a cell's id; all of them floats


@inlined
def bin_of(value: Any, lower: Any, scale: Any, share: Any, last: Any) -> Any:
    found = np.floor(np.floor(moved(value, lower, scale)) * share)
    found = max(0.0, found)  # 0 for NaN
    return min(last, found)


@inlined
def tally_floats(ids: Any, n: Any, whole: Any, counts: Any) -> None:
    """Add one to the count of each id. Converted all at once, since one by one it takes longer than all the rest."""
    for i in range(n):
        whole[i] = np.int32(ids[i])
    for i in range(n):
        counts[np.uint32(whole[i])] += 1


@inlined
def one_row(row: Any, bins: BinArrays) -> Any:
    cell = 0.0
    for j in range(row.shape[0]):
        cell += bin_of(row[j], bins.lower[j], bins.scale[j], bins.share[j], bins.last[j]) * bins.stride[j]
    return cell


@summing_kernel
def count_by_rows(values: Any, begin: int, end: int, bins: BinArrays, ids: Any, whole: Any, counts: Any) -> None:
    """Add rows begin..end - 1 of an array whose rows are contiguous. ``ids`` and ``whole`` are buffers of BLOCK entries or more."""
    for start in range(begin, end, BLOCK):
        n = min(BLOCK, end - start)
        for i in range(0, n - 3, 4):
            first, second, third, fourth = 0.0, 0.0, 0.0, 0.0
            at = start + i
            for j in range(values.shape[1]):
                lower, scale, share = bins.lower[j], bins.scale[j], bins.share[j]
                last, stride = bins.last[j], bins.stride[j]
                first += bin_of(values[at, j], lower, scale, share, last) * stride
                second += bin_of(values[at + 1, j], lower, scale, share, last) * stride
                third += bin_of(values[at + 2, j], lower, scale, share, last) * stride
                fourth += bin_of(values[at + 3, j], lower, scale, share, last) * stride
            ids[i], ids[i + 1], ids[i + 2], ids[i + 3] = first, second, third, fourth
        for i in range(n - n % 4, n):
            ids[i] = one_row(values[start + i], bins)
        tally_floats(ids, n, whole, counts)


@inlined
def add_column(column: Any, j: Any, bins: BinArrays, ids: Any) -> None:
    lower, scale, share, last, stride = bins.lower[j], bins.scale[j], bins.share[j], bins.last[j], bins.stride[j]
    for i in range(column.shape[0]):
        ids[i] += bin_of(column[i], lower, scale, share, last) * stride


@inlined
def add_four_columns(a: Any, b: Any, c: Any, d: Any, j: Any, bins: BinArrays, ids: Any) -> None:
    la, lb, lc, ld = bins.lower[j], bins.lower[j + 1], bins.lower[j + 2], bins.lower[j + 3]
    sa, sb, sc, sd = bins.scale[j], bins.scale[j + 1], bins.scale[j + 2], bins.scale[j + 3]
    ha, hb, hc, hd = bins.share[j], bins.share[j + 1], bins.share[j + 2], bins.share[j + 3]
    ta, tb, tc, td = bins.last[j], bins.last[j + 1], bins.last[j + 2], bins.last[j + 3]
    ra, rb, rc, rd = bins.stride[j], bins.stride[j + 1], bins.stride[j + 2], bins.stride[j + 3]
    for i in range(a.shape[0]):
        ids[i] += (
            bin_of(a[i], la, sa, ha, ta) * ra
            + bin_of(b[i], lb, sb, hb, tb) * rb
            + bin_of(c[i], lc, sc, hc, tc) * rc
            + bin_of(d[i], ld, sd, hd, td) * rd
        )


@kernel
def add_one(column: Any, j: int, bins: BinArrays, ids: Any) -> None:
    """``add_column``, to be called from outside."""
    add_column(column, j, bins, ids)


@kernel
def add_four(a: Any, b: Any, c: Any, d: Any, j: int, bins: BinArrays, ids: Any) -> None:
    """``add_four_columns``, to be called from outside."""
    add_four_columns(a, b, c, d, j, bins, ids)


@kernel
def tally_ids(ids: Any, n: int, whole: Any, counts: Any) -> None:
    """``tally_floats``, to be called from outside."""
    tally_floats(ids, n, whole, counts)


def count_column_list(columns: Any, bins: BinArrays, ids: Any, whole: Any, counts: Any) -> None:
    """Add rows that are given by columns, at most LIST_BLOCK of them."""
    n, first = len(columns[0]), len(columns) - len(columns) % 4
    ids[:n] = 0.0
    for j in range(0, first, 4):
        a, b, c, d = columns[j : j + 4]
        add_four(a, b, c, d, j, bins, ids)
    for j in range(first, len(columns)):
        add_one(columns[j], j, bins, ids)
    tally_ids(ids, n, whole, counts)


@kernel
def count_by_columns(values: Any, begin: int, end: int, bins: BinArrays, ids: Any, whole: Any, counts: Any) -> None:
    """Add rows begin..end - 1 of an array of any layout; best where its columns are contiguous."""
    features = values.shape[1]
    for start in range(begin, end, BLOCK):
        n = min(BLOCK, end - start)
        stop = start + n
        for i in range(n):
            ids[i] = 0.0
        for j in range(0, features - 3, 4):
            a, b = values[start:stop, j], values[start:stop, j + 1]
            c, d = values[start:stop, j + 2], values[start:stop, j + 3]
            add_four_columns(a, b, c, d, j, bins, ids)
        for j in range(features - features % 4, features):
            add_column(values[start:stop, j], j, bins, ids)
        tally_floats(ids, n, whole, counts)
