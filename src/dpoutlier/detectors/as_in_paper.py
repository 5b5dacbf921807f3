"""The paper's detector with the paper's preprocessing: for its reproduction, and not private."""

from __future__ import annotations

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import at_least_one, one_of
from dpoutlier.detectors.grid import DPGridKNN
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.bounds import Bounds
from dpoutlier.partitions.grid import Grid
from dpoutlier.tables import convert as tables

__all__ = ["as_in_paper", "unsafe_bounds"]

MAX_DEPTH = 4
PREPROCESSING = ("centre-first", "as-printed", "range")


def as_in_paper(
    reference: Any, *, epsilon: Any, k: int, b: int, weighted: bool = False, preprocessing: str = "centre-first"
) -> DPGridKNN:
    """Fit DP Grid k-NN as the paper prints it (Rauch, Olatunji and Khosla). **Not private**, and its statement says why.

    What leaks: the grid lies where the reference rows lie (``unsafe_bounds``), and no noise covers that. In the paper these
    numbers stay on a trusted server, so that only answers depend on them; here the model holds them. The noise is exact, of scale
    1 / epsilon; for the paper's own neighbours, which replace a row, that promises 2 epsilon. For a private fit use
    :class:`~dpoutlier.DPGridKNN` with declared bounds, or better :class:`~dpoutlier.DPForest`.

    Parameters
    ----------
    reference : array or data frame
        The reference rows, in memory, numbers only and none missing.
    epsilon : number
        The privacy budget that the paper would state.
    k, b : int
        Noisy rows to gather; bins of each feature.
    weighted : bool
        DP Grid wk-NN, the weighted version.
    preprocessing : {"centre-first", "as-printed", "range"}
        In the order of the authors' code, in that of Section 4.1, or the range of the rows; see ``unsafe_bounds``.

    Returns
    -------
    DPGridKNN
        Fitted. Walks end after four grid steps, as in the authors' code; one that has not gathered k rows scores as Algorithm 1
        prints.

    Examples
    --------
    >>> detector = as_in_paper(reference, epsilon=1, k=10, b=5)  # doctest: +SKIP
    >>> detector.outlier_scores(points), detector.guarantee_.voided_by  # doctest: +SKIP
    """
    bounds = unsafe_bounds(reference, preprocessing)
    grid = Grid((at_least_one(b=b),) * len(bounds.lower))
    return DPGridKNN(
        epsilon,
        features=bounds,
        k=k,
        bins=b,
        weighted=weighted,
        max_depth=MAX_DEPTH,
        max_cells=grid.most_within(MAX_DEPTH),  # so that depth alone ends a walk
        exhausted="as-printed",
    ).fit(reference)


def unsafe_bounds(reference: Any, preprocessing: str = "centre-first") -> Bounds:
    """The paper's preprocessing as bounds, made from the reference rows. A detector that is given them promises nothing.

    Parameters
    ----------
    reference : array or data frame
    preprocessing : {"centre-first", "as-printed", "range"}
        "centre-first" subtracts the mean, divides by the largest absolute value and maps [-1, 1] onto [0, 1]: from mean - a to
        mean + a, with a the largest distance from the mean. "as-printed" divides by the largest absolute value of the rows as they
        are, maps, and puts the mean in the middle of the cube, in the order of Section 4.1: a is then the largest absolute value.
        "range" is from the least value to the largest.

    Examples
    --------
    >>> bounds = unsafe_bounds([[0.0], [2.0], [10.0]])
    >>> float(bounds.lower[0]), float(bounds.upper[0]), bounds.leaked
    (-2.0, 10.0, True)
    """
    one_of(PREPROCESSING, preprocessing=preprocessing)
    with np.errstate(all="ignore"):  # infinite ends are refused below
        lower, upper = np.array([_ends(values, preprocessing) for values in _columns(reference)]).T
        finite = np.isfinite(upper - lower).all()
    if not finite:
        raise InvalidParameterError(
            "reference must hold finite numbers, none of them near the largest float, and none missing. Leave out columns of text, "
            "and rows with gaps."
        )
    found = Bounds(lower, upper, tables.column_names(reference))
    found.leaked = True
    return found


def _columns(reference: Any) -> list[NDArray[np.float64]]:
    if tables.is_lazy(reference) or isinstance(reference, str | PathLike):
        raise InvalidParameterError(
            f"reference must be an array or a data frame in memory, got {type(reference).__name__}. Read or collect it first."
        )
    columns = tables.columns(reference)
    if not columns or not len(columns[0]):
        raise InvalidParameterError(
            "reference must have at least one row and one column. Give the rows that the grid is made from."
        )
    return columns


def _ends(values: NDArray[np.float64], preprocessing: str) -> tuple[float, float]:
    least, largest = float(values.min()), float(values.max())
    if preprocessing == "range":
        lower, upper = least, largest
    else:
        mean = least if least == largest else float(values.mean())
        reach = float(np.abs(values - mean if preprocessing == "centre-first" else values).max())
        lower, upper = mean - reach, mean + reach
    if lower == upper:  # a constant feature: any width will do
        half = max(0.5, abs(lower) * 1e-6)
        return lower - half, upper + half
    return lower, upper
