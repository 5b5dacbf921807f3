"""What counts and scores take from a model file: arrays and exact numbers, each checked before it is used."""

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import exact_number
from dpoutlier.counts.base import MAX_COUNT
from dpoutlier.exceptions import ModelFileError
from dpoutlier.partitions.base import Partition

Arrays = dict[str, NDArray[Any]]


def rational(text: str) -> Fraction:
    number = exact_number(text, digits=200)
    if number is None:
        raise ModelFileError(f"the model file has {text[:80]!r} where a number should be.")
    return number


def expect(arrays: Arrays, name: str, dtype: Any, shape: tuple[int | None, ...]) -> NDArray[Any]:
    array = arrays[name]
    fits = len(shape) == array.ndim and all(want in {None, got} for want, got in zip(shape, array.shape, strict=True))
    if array.dtype != np.dtype(dtype) or not fits:
        raise ModelFileError(f"array {name} of the model file has type {array.dtype} and shape {array.shape}.")
    return array


def too_large(counts: NDArray[np.int64], most: int) -> bool:
    return bool(((counts >= most) | (counts <= -most)).any())  # the absolute value of the least integer is negative


def listed_cells(
    arrays: Arrays, partition: Partition, name: str, least: int = 1
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Cells in ascending order, and their counts, none below ``least``."""
    ids = expect(arrays, "ids", "<u8", (None, 2))
    counts = expect(arrays, name, "<i8", (len(ids),))
    high, low = ids[:, 0], ids[:, 1]
    ascending = (high[1:] > high[:-1]) | ((high[1:] == high[:-1]) & (low[1:] > low[:-1]))
    last = divmod(partition.n_cells - 1, 2**64)
    inside = not len(ids) or (int(high[-1]), int(low[-1])) <= last
    if not ascending.all() or not inside or (counts < least).any() or (counts >= MAX_COUNT).any():
        raise ModelFileError("the cells of the model file are not in order.")
    return ids, counts
