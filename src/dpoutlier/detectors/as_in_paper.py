"""The paper's detector with the paper's preprocessing: for its reproduction, and not private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier import tables
from dpoutlier._validate import one_of
from dpoutlier.bounds import Bounds
from dpoutlier.detectors.grid import DPGridKNN

__all__ = ["as_in_paper", "unsafe_bounds"]

MOST_CELLS = 10**6  # more than lie within four steps in 30 features
PREPROCESSING = ("centre-first", "as-printed", "range")


def as_in_paper(
    reference: Any, *, epsilon: Any, k: int, b: int, weighted: bool = False, preprocessing: str = "centre-first"
) -> DPGridKNN:
    """Fit DP Grid k-NN as the paper prints it (Rauch, Olatunji and Khosla). **Not private**, and its statement says why.

    What leaks: the grid lies where the reference rows lie (``unsafe_bounds``), and no noise covers that. In the paper these
    numbers stay on a trusted server, so that only answers depend on them; here the model holds them. The noise is drawn in floating
    point, as in the authors' code, and its scale 1 / epsilon promises 2 epsilon for the paper's own neighbours, which replace a
    row. For a private fit use :class:`~dpoutlier.DPGridKNN` with declared bounds, or better :class:`~dpoutlier.DPForest`.

    Parameters
    ----------
    reference : array or data frame
        The reference rows, numbers only.
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
    return DPGridKNN(
        epsilon,
        bounds=unsafe_bounds(reference, preprocessing),
        k=k,
        bins=b,
        weighted=weighted,
        exhausted="as-printed",
        max_cells=MOST_CELLS,
        unsafe_float_laplace=True,
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
    rows = np.column_stack(tables.columns(reference))
    lower, upper = _ends(rows, one_of(PREPROCESSING, preprocessing=preprocessing))
    wide = np.where(upper > lower, 0.0, 0.5)  # a constant feature: any width will do
    found = Bounds(lower - wide, upper + wide, tables.column_names(reference))
    found.leaked = True
    return found


def _ends(rows: NDArray[np.float64], preprocessing: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if preprocessing == "range":
        return rows.min(axis=0), rows.max(axis=0)
    mean = rows.mean(axis=0)
    reach = np.abs(rows - mean if preprocessing == "centre-first" else rows).max(axis=0)
    return mean - reach, mean + reach
