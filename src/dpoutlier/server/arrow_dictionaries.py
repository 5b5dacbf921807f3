"""Columns of Arrow whose values are entries of a dictionary. Each entry is read once, however many rows have it."""

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from dpoutlier.features.category import Category
from dpoutlier.tables import convert


class DictionaryColumn:
    """One column, checked; its chunks share one dictionary. ValueError if an index points past it."""

    def __init__(self, column: Any, category: Category | None) -> None:
        kind = column.type
        self.dictionary = column.chunk(0).dictionary if column.num_chunks else pa.array([], kind.value_type)
        self.dictionary.validate(full=True)
        indices = pa.chunked_array([chunk.indices for chunk in column.chunks], kind.index_type)
        indices.validate(full=True)
        places = pc.cast(pc.fill_null(indices, 0), pa.int64()).to_numpy()
        missing, n = indices.is_null().to_numpy(), len(self.dictionary)
        if (((places < 0) | (places >= n)) & ~missing).any():
            raise ValueError
        self.places: NDArray[np.int64] = np.where(missing, n, places)
        self.known: dict[int, Any] = {n: None}
        if category is None:
            entries = np.append(convert.columns(pa.table([self.dictionary], ["x"]))[0], np.nan)
        else:
            entries = convert.level_values([*self.dictionary.to_pylist(), None], category)
        self.numbers: NDArray[np.float64] = entries[self.places]

    def value(self, row: int) -> Any:
        """What stands in a row: the same object for equal ones."""
        place = int(self.places[row])
        if place not in self.known:
            self.known[place] = self.dictionary[place].as_py()
        return self.known[place]
