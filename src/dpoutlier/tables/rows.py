"""Rows of a table on the lattice, made block by block: nothing here is as large as the table."""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpoutlier.features.domain import Domain
from dpoutlier.kernels.positions import fill_positions


class Positions(Protocol):
    """Lattice positions of rows: an array of shape (n, n_features), or something that makes slices of one."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> NDArray[np.uint32]: ...


class MissingValueError(ValueError):
    """A value is missing where none may be. The caller knows the table and adds where."""


class Rows:
    """Rows as they were given. ``rows[a:b]`` are their positions; each depends on its own row alone.

    >>> Rows([np.array([-1.0, 0.0, 0.5, 1.0, np.inf])], Domain((0.0,), (1.0,)))[:].ravel().tolist()
    [0, 0, 2147483648, 4294967295, 4294967295]

    Parameters
    ----------
    values : array of shape (n, n_features), or one array for each feature
        Of float32 or float64, in any layout. Never copied.
    domain : Domain
    complete : bool
        Raise ``MissingValueError`` where a value is missing and its feature has no cell for that. Else it goes to position 0, in
        silence.
    """

    def __init__(
        self, values: NDArray[Any] | Sequence[NDArray[Any]], domain: Domain, *, complete: bool = False
    ) -> None:
        self.values, self.domain, self.complete = values, domain, complete
        self.columns = [values[:, j] for j in range(values.shape[1])] if isinstance(values, np.ndarray) else [*values]

    def __len__(self) -> int:
        return len(self.columns[0])

    def __getitem__(self, part: slice, /) -> NDArray[np.uint32]:
        first, last, _ = part.indices(len(self))
        out = np.empty((self.domain.n_features, max(last - first, 0)), np.uint32)
        for j, (column, line, to) in enumerate(zip(self.columns, self.domain.lines, out, strict=True)):
            own = (line.lower, line.scale, float(line.last), line.missing)
            missing = fill_positions(column[first:last], *own, to)
            if missing and self.complete and not self.domain.has_missing_cell(j):
                raise MissingValueError
        return out.T
