"""Arguments that have a new name. Their old names are accepted, with a warning, until version 1.0."""

import warnings
from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

NEW_NAMES = {"bounds": "features", "holder": "counts", "n_hint": "n_rows_hint"}
R = TypeVar("R")


def with_new_names(given: dict[str, Any]) -> dict[str, Any]:
    """The same arguments by their new names. The warning names the line that called the caller."""
    found = dict(given)
    for old in sorted(NEW_NAMES.keys() & found.keys()):
        new = NEW_NAMES[old]
        if new in found:
            raise TypeError(f"{old} is the old name of {new}: give {new} only.")
        warnings.warn(f"{old} is now called {new}; the old name will be removed in 1.0.", FutureWarning, stacklevel=3)
        value = found.pop(old)
        found[new] = "estimate" if (old, value) == ("n_hint", "buy") else value
    return found


def accept_old_names(init: Callable[..., R]) -> Callable[..., R]:
    """Decorate a constructor so that it accepts old names of arguments as well."""

    @wraps(init)
    def accepting(*args: Any, **kwargs: Any) -> R:
        return init(*args, **with_new_names(kwargs))

    accepting.deprecated_original = init  # type: ignore[attr-defined] # where scikit-learn looks for the arguments
    return accepting
