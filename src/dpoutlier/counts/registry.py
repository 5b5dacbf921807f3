"""All kinds of counts, by the word for them in files: a new one is its own file in this folder and one line here.

``trusted/fit.py`` chooses the kind that a fit releases, and ``add.py`` says which kinds can be merged.
"""

from typing import Any

from dpoutlier.counts.base import NoisyCounts
from dpoutlier.counts.dense import DenseCounts
from dpoutlier.counts.exact import ExactCounts
from dpoutlier.counts.file_arrays import Arrays
from dpoutlier.counts.keyed import KeyedCounts
from dpoutlier.counts.sparse import SparseCounts
from dpoutlier.exceptions import ModelFileError
from dpoutlier.partitions.base import Partition

COUNTS: dict[Any, Any] = {"dense": DenseCounts, "exact": ExactCounts, "sparse": SparseCounts, "keyed": KeyedCounts}


def counts_of(content: dict[str, Any], arrays: Arrays, partition: Partition) -> NoisyCounts:
    """Counts of the cells of this partition, from what a file says of them and its arrays."""
    if content.get("unsafe_float", False) is True:
        raise ModelFileError(
            "the model file has noise in floating point (unsafe_float_laplace), which is not private. dpoutlier no longer reads "
            "such files: fit again."
        )
    if content["kind"] not in COUNTS:
        raise ModelFileError(f"the model file has counts {content['kind']!r} that this dpoutlier does not know.")
    found: NoisyCounts = COUNTS[content["kind"]].from_file(content, arrays, partition)
    return found
