"""The paper's detector with the paper's preprocessing: for its reproduction, and not private."""

from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import one_of, positive_int
from dpoutlier.detectors.grid import DPGridKNN
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.bounds import Bounds
from dpoutlier.partitions.grid import Grid
from dpoutlier.tables import convert

MAX_DEPTH = 4
PREPROCESSING = ("centre-first", "as-printed", "range")


def as_in_paper(
    X: Any, *, epsilon: Any, k: int, bins: int, weighted: bool = False, preprocessing: str = "centre-first"
) -> DPGridKNN:
    """Fit DP Grid k-NN with the paper's own preprocessing. **Not private.**

    The grid lies where the reference rows lie, and no noise covers that. In the paper these numbers stay on
    a trusted server; here the model holds them. The noise is exact, with scale 1 / epsilon; for the paper's own neighbours,
    which replace a row, this gives only 2 epsilon. The model's privacy statement says that nothing is guaranteed. For a private fit
    use :class:`DPGridKNN` with declared bounds, or :class:`DPForest`.

    Parameters
    ----------
    X : array or data frame
        Reference rows, in memory; numbers only, none missing.
    epsilon : float, Fraction or str
        The privacy budget that the paper would state.
    k : int
        Noisy rows to gather around a point.
    bins : int
        Bins of each feature, the paper's b.
    weighted : bool, default=False
        Use DP Grid wk-NN, the weighted version.
    preprocessing : {'centre-first', 'as-printed', 'range'}, default='centre-first'
        Which bounds to take from the rows: as in the authors' code, as Section 4.1 prints, or the range of the rows.

    Returns
    -------
    DPGridKNN
        The fitted detector. Walks end after four grid steps, as in the authors' code. A walk that gathers fewer than k rows
        scores as Algorithm 1 prints.

    Raises
    ------
    InvalidParameterError
        If an argument has no meaning, if the rows are not in memory, or if they contain anything except finite numbers.

    Warns
    -----
    UnsafeWarning
        Always, because the fit is not private.

    See Also
    --------
    DPGridKNN : The private detector.

    References
    ----------
    .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Sections 4.1 to 4.3 and Algorithm 1.

    Examples
    --------
    >>> import warnings
    >>> import numpy as np
    >>> from dpoutlier import as_in_paper
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> with warnings.catch_warnings():  # it is not private, and says so
    ...     warnings.simplefilter("ignore")
    ...     detector = as_in_paper(X, epsilon=1, k=10, bins=5)
    >>> detector.guarantee_.private
    False
    """
    bounds = unsafe_bounds(X, preprocessing)
    grid = Grid((positive_int(bins=bins),) * len(bounds.lower))
    return DPGridKNN(
        epsilon,
        features=bounds,
        k=k,
        bins=bins,
        weighted=weighted,
        max_depth=MAX_DEPTH,
        max_cells=grid.most_within(MAX_DEPTH),  # so that depth alone ends a walk
        exhausted="as-printed",
    ).fit(X)


def unsafe_bounds(X: Any, preprocessing: str = "centre-first") -> Bounds:
    """Take bounds from the reference rows, as the paper does. **Not private**: a detector with such bounds guarantees nothing.

    Parameters
    ----------
    X : array or data frame
        Reference rows, in memory; numbers only, none missing.
    preprocessing : {'centre-first', 'as-printed', 'range'}, default='centre-first'
        "centre-first" subtracts the mean, divides by the largest absolute value and maps [-1, 1] onto [0, 1]: from mean - a to
        mean + a, with a the largest distance from the mean. "as-printed" divides by the largest absolute value of the rows as they
        are, maps, and puts the mean in the middle of the cube, in the order of Section 4.1: a is then the largest absolute value.
        "range" is from the least value to the largest.

    Returns
    -------
    Bounds
        With ``leaked`` set, so that every detector with them says that it is not private.

    Examples
    --------
    >>> bounds = unsafe_bounds([[0.0], [2.0], [10.0]])
    >>> float(bounds.lower[0]), float(bounds.upper[0]), bounds.leaked
    (-2.0, 10.0, True)
    """
    one_of(PREPROCESSING, preprocessing=preprocessing)
    with np.errstate(all="ignore"):  # infinite ends are refused below
        lower, upper = np.array([_ends(values, preprocessing) for values in _columns(X)]).T
        finite = np.isfinite(upper - lower).all()
    if not finite:
        raise InvalidParameterError(
            "X must hold finite numbers, none of them near the largest float, and none missing. Leave out columns of text, "
            "and rows with gaps."
        )
    found = Bounds(lower, upper, convert.column_names(X))
    found.leaked = True
    return found


def _columns(X: Any) -> list[NDArray[np.float64]]:
    if convert.is_lazy(X) or isinstance(X, str | PathLike):
        raise InvalidParameterError(
            f"X must be an array or a data frame in memory, got {type(X).__name__}. Read or collect it first."
        )
    columns = convert.columns(X)
    if not columns or not len(columns[0]):
        raise InvalidParameterError(
            "X must have at least one row and one column. Give the rows that the grid is made from."
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
