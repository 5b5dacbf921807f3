"""The features file: TOML or JSON that names the features, their ranges and their levels; see docs/features-file.md."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dpoutlier.category import Category
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.private_bounds import PrivateBounds

__all__ = ["read_features"]

SHAPES = (
    "[lower, upper], {lower = ..., upper = ...}, {levels = [...]} or {outer = [lower, upper]} to buy its bounds; to each may be "
    "added missing = 'cell', to levels ordered = true or other = false, and to outer share = 0.1"
)


def read_features(path: str | Path) -> tuple[dict[str, Any], list[str]]:
    """What a features file declares: for each feature a pair, a Category or a PrivateBounds; and which have a missing cell."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except FileNotFoundError:
        raise InvalidParameterError(f"features file {path} does not exist.") from None
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise InvalidParameterError(f"features file {path} cannot be read: {error}.") from None
    return _declared(path, content)


def _declared(path: Path, content: Any) -> tuple[dict[str, Any], list[str]]:
    features = content.get("features") if isinstance(content, dict) else None
    if not isinstance(features, dict) or not features or set(content) != {"features"}:
        raise InvalidParameterError(
            f"features file {path} must hold one table named 'features', one entry for each feature, such as "
            "[features] / age = [0, 120]."
        )
    entries: dict[str, Any] = {}
    cells: list[str] = []
    for name, entry in features.items():
        own = dict(entry) if isinstance(entry, dict) else entry
        if isinstance(own, dict) and "missing" in own:
            policy = own.pop("missing")
            if policy not in ("cell", "error"):
                raise InvalidParameterError(
                    f"features file {path}: missing of {name} must be 'cell' or 'error', got {policy!r}."
                )
            cells += [name] * (policy == "cell")
        entries[name] = _entry(path, name, own, entry)
    return entries, cells


def _entry(path: Path, name: str, own: Any, entry: Any) -> Any:
    """A pair, a Category or a PrivateBounds."""
    try:
        match own:
            case [_, _]:
                return own
            case {"lower": lower, "upper": upper, **rest} if not rest:
                return [lower, upper]
            case {"levels": _} if set(own) <= {"levels", "ordered", "other"}:
                return Category(**own)
            case {"outer": _} if set(own) <= {"outer", "share"}:
                return PrivateBounds(**own)
    except InvalidParameterError as error:
        raise InvalidParameterError(f"features file {path}: {name}: {error}") from None
    raise InvalidParameterError(f"features file {path}: {name} must be {SHAPES}; got {entry!r}.")
