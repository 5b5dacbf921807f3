"""Noisy counts of a model file, by their kind."""

from collections.abc import Callable
from typing import Any

from dpoutlier._validate import at_least_one
from dpoutlier.counts.base import MOST_COUNT, NoisyCounts
from dpoutlier.counts.dense import MOST_DENSE_CELLS, DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.keyed import KEY_BYTES, NOISE, SALT_BYTES, KeyedCounts, noise_of
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.exceptions import ModelFileError
from dpoutlier.model.file.fields import Arrays, expect, listed, rational, too_large
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.partitions.base import Partition

__all__ = ["counts_of"]


def counts_of(content: dict[str, Any], arrays: Arrays, partition: Partition) -> NoisyCounts:
    """Counts of the cells of this partition."""
    if content.get("unsafe_float", False) is True:
        raise ModelFileError(
            "the model file has noise in floating point (unsafe_float_laplace), which is not private. dpoutlier no longer reads "
            "such files: fit again."
        )
    if content["kind"] not in KINDS:
        raise ModelFileError(f"the model file has counts {content['kind']!r} that this dpoutlier does not know.")
    return KINDS[content["kind"]](content, arrays, partition)


def _dense(_: dict[str, Any], arrays: Arrays, partition: Partition) -> DenseCounts:
    if partition.n_cells > MOST_DENSE_CELLS:
        raise ModelFileError("the model file has too many cells for dense counts.")
    counts = expect(arrays, "counts", "<i8", (partition.n_cells,))
    if too_large(counts, MOST_COUNT):
        raise ModelFileError("the counts of the model file are too large.")
    return DenseCounts(counts)


def _exact(_: dict[str, Any], arrays: Arrays, partition: Partition) -> ExactCounts:
    return ExactCounts(*listed(arrays, partition, "exact"))


def _sparse(content: dict[str, Any], arrays: Arrays, partition: Partition) -> SparseCounts:
    tau = at_least_one(MOST_COUNT - 1, threshold=content["threshold"])
    return SparseCounts(*listed(arrays, partition, "noisy", tau), tau)


def _keyed(content: dict[str, Any], arrays: Arrays, partition: Partition) -> KeyedCounts:
    noise = _version_of_noise(content["prf"], content["sampler"])
    ids, exact = listed(arrays, partition, "exact")
    key = expect(arrays, "key", "u1", (KEY_BYTES,)).tobytes()
    salt = expect(arrays, "salt", "u1", (SALT_BYTES,)).tobytes()
    law = DiscreteLaplace(rational(content["rate"]))
    if noise > noise_of(law):
        raise ModelFileError("the model file has noise too wide for the table that it names.")
    return KeyedCounts(ids, exact, key, salt, law, noise)


def _version_of_noise(prf: Any, sampler: Any) -> int:
    """Of the noise that a file names; a file keeps its own for ever."""
    named = [version for version, names in NOISE.items() if names == (prf, sampler)]
    if not named:
        raise ModelFileError(
            f"the model file needs the noise of {prf} with {sampler}, which this dpoutlier does not have. Other noise on the same "
            "counts would be a second release: upgrade dpoutlier."
        )
    return named[0]


KINDS: dict[Any, Callable[[dict[str, Any], Arrays, Partition], NoisyCounts]] = {
    "dense": _dense,
    "exact": _exact,
    "sparse": _sparse,
    "keyed": _keyed,
}
