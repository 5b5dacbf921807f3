"""Options that have a new name. Their old names are accepted, without a place in --help, until version 1.0."""

from collections.abc import Callable
from typing import Any

NEW_NAMES = {
    "fit": {"trees": "n-trees", "n-hint": "n-rows-hint", "holder": "counts"},
    "plan": {"rows": "n-rows"},
    "score": {"jobs": "n-jobs"},
    "audit": {"jobs": "n-jobs"},
}


def accept_old_names(command: Callable[..., Any]) -> dict[str, Any]:
    """Settings of a command under which the parser reads an old name as the new one."""
    names = NEW_NAMES.get(command.__name__, {})
    return {"token_normalize_func": lambda name: names.get(name, name)}
