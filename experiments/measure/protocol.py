"""The paper's protocol: which rows are reference, which are scored, and what stands in for declared bounds (its Section 5.2)."""

import hashlib
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import Bounds, FittedDetector
from dpoutlier.exceptions import RepeatedFitWarning, UnsafeWarning
from experiments.measure.datasets import LabelledRows

REFERENCE_TENTHS = 8
WIDENED_BY = 0.1


@dataclass(frozen=True)
class Split:
    """Reference rows, and points to score with their labels."""

    reference: NDArray[np.float64]
    points: NDArray[np.float64]
    outlying: NDArray[np.bool_]


def split_rows(data: LabelledRows, number: int) -> Split:
    """80 % of the inliers as reference; the others and the outliers as points. The paper does not say which 80 %.

    Inliers are put in the order of a hash of (split, position), so that a split is the same on every machine and version.
    """
    inliers = data.inliers
    order = sorted(range(len(inliers)), key=lambda i: hashlib.sha256(f"split {number}, row {i}".encode()).digest())
    cut = REFERENCE_TENTHS * len(inliers) // 10
    points = np.concatenate([inliers[order[cut:]], data.outliers])
    outlying = np.arange(len(points)) >= len(points) - len(data.outliers)
    return Split(inliers[order[:cut]], points, outlying)


def bounds_widened(rows: NDArray[np.float64]) -> Bounds:
    """The range of all rows of the file, widened by 10 % on each side: a stand-in for bounds that a custodian declares."""
    lower, upper = rows.min(axis=0), rows.max(axis=0)
    more = WIDENED_BY * np.where(upper > lower, upper - lower, 1.0)
    return Bounds(lower - more, upper + more)


def seed_of(*what: object) -> int:
    """A seed for the noise of a run, from what the run is."""
    return int.from_bytes(hashlib.sha256(repr(what).encode()).digest()[:8], "big")


def bins_of(detector: Any) -> list[int]:
    """Bins of each feature of a fitted grid, which its rule may have chosen."""
    return list(FittedDetector(detector.model_).estimator().bins)


@contextmanager
def nothing_private() -> Iterator[None]:
    """The rows are public, and runs are seeded to be repeatable: the report says so, and warnings need not."""
    with warnings.catch_warnings():
        for kind in (UnsafeWarning, RepeatedFitWarning):
            warnings.simplefilter("ignore", kind)
        yield
