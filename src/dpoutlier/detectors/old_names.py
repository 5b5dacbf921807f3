"""Arguments that have a new name. Their old names are accepted, with a warning, until version 1.0."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

__all__ = ["accept_old_names"]

NEW_NAMES = {"bounds": "features", "holder": "counts", "n_hint": "n_rows_hint"}
R = TypeVar("R")


def accept_old_names(init: Callable[..., R]) -> Callable[..., R]:
    """Decorate a constructor so that it accepts old names of arguments as well."""

    @wraps(init)
    def accepting(*args: Any, **kwargs: Any) -> R:
        for old in sorted(NEW_NAMES.keys() & kwargs.keys()):
            new = NEW_NAMES[old]
            if new in kwargs:
                raise TypeError(f"{old} is the old name of {new}: give {new} only.")
            warnings.warn(f"{old} is now called {new}; the old name goes with 1.0.", FutureWarning, stacklevel=2)
            value = kwargs.pop(old)
            kwargs[new] = "estimate" if (old, value) == ("n_hint", "buy") else value
        return init(*args, **kwargs)

    accepting.deprecated_original = init  # type: ignore[attr-defined] # where scikit-learn looks for the arguments
    return accepting
