"""The features file: TOML or JSON that names the features, their ranges and their levels; see docs/features-file.md."""

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Any

from dpoutlier._validate import parameter_error, shown
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.category import Category
from dpoutlier.features.domain import check_feature_name, check_range
from dpoutlier.features.private_bounds import PrivateBounds, number

SHAPES = (
    "[lower, upper], {lower = ..., upper = ...}, {levels = [...]} or {outer = [lower, upper]} for private bounds; missing = 'cell' "
    "can be added to each, ordered = true or other = false to levels, share = 0.1 to outer"
)
KEYS = {"lower", "upper", "levels", "ordered", "other", "outer", "share", "missing"}
# tomllib's memory and time grow with the square of the number of parts of a key. An entry needs three at most.
QUOTED = re.compile(
    r'''"""(?:[^"\\]|\\.|"(?!""))*+"""|'{3}(?:[^']|'(?!''))*+'{3}|"(?:[^"\\\n]|\\.)*+"|'[^'\n]*+'|\#[^\n]*+''',
    re.DOTALL,
)
MANY_PARTS = re.compile(r"(?<![\w-])(?:[\w-]++[ \t]*+\.[ \t]*+){16}")
EXAMPLE = "with an entry for each feature, such as [features] / age = [0, 120]"


def read_features(path: str | Path) -> tuple[dict[str, Any], list[str]]:
    """What a features file declares: for each feature a pair, a Category or a PrivateBounds; and which have a missing cell."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
        content = json.loads(text, object_pairs_hook=_once) if path.suffix.lower() == ".json" else _toml(text)
    except FileNotFoundError:
        raise InvalidParameterError(f"features file {path} does not exist.") from None
    except (OSError, ValueError, RecursionError) as error:
        raise InvalidParameterError(f"features file {path} cannot be read: {error}.") from None
    try:
        return _declared(_features(content))
    except InvalidParameterError as error:
        raise error.within(f"features file {path}") from None


def _toml(text: str) -> Any:
    if MANY_PARTS.search(QUOTED.sub("x", text)):
        raise ValueError("a key has too many parts")
    return tomllib.loads(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, which unlike TOML would take the last of two entries with the same name."""
    found = dict(pairs)
    if len(found) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise ValueError(f"{twice!r} occurs twice")
    return found


def _features(content: Any) -> dict[str, Any]:
    """The one table of a features file."""
    features = content.get("features") if isinstance(content, dict) else None
    more = [name for name in content if name != "features"] if isinstance(content, dict) else []
    if not isinstance(features, dict) or more:
        found = f" and nothing else; found {', '.join(map(repr, more[:10]))}" if more else ""
        raise InvalidParameterError(f"it must hold one table named 'features', {EXAMPLE}{found}.")
    if not features:
        raise InvalidParameterError(
            f"it must hold one table named 'features', {EXAMPLE}, and that table is empty. In a draft, take away the # before the "
            "features to be used and write the range or the levels of each."
        )
    return features


def _declared(features: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    entries: dict[str, Any] = {}
    cells: list[str] = []
    for name, entry in features.items():
        check_feature_name(name)
        own = dict(entry) if isinstance(entry, dict) else entry
        if isinstance(own, dict) and "missing" in own:
            policy = own.pop("missing")
            if policy not in ("cell", "error"):
                raise parameter_error(f"missing of {name}", "'cell' or 'error'", policy)
            cells += [name] * (policy == "cell")
        entries[name] = _entry(name, own, entry)
    shares = {entry.share for entry in entries.values() if isinstance(entry, PrivateBounds)}
    if len(shares) > 1:
        raise parameter_error(
            "share", "the same for all features, since it is what their bounds cost together", sorted(shares)
        )
    return entries, cells


def _entry(name: str, own: Any, entry: Any) -> Any:
    """A pair, a Category or a PrivateBounds."""
    try:
        match own:
            case [*levels] if levels and all(isinstance(level, str) for level in levels):
                raise parameter_error(
                    name, "[lower, upper]", levels, f"For levels write {name} = {{levels = {levels!r}}}."
                )
            case [lower, upper]:
                return _range(name, lower, upper)
            case {"lower": lower, "upper": upper, **rest} if not rest:
                return _range(name, lower, upper)
            case {"levels": _} if set(own) <= {"levels", "ordered", "other"}:
                return Category(**own)
            case {"outer": _} if set(own) <= {"outer", "share"}:
                return PrivateBounds(**own)
    except InvalidParameterError as error:
        raise error.within(name) from None
    hint = " A name with a dot in it needs quotes." if isinstance(entry, dict) and not set(entry) & KEYS else ""
    raise InvalidParameterError(f"{name} must be {SHAPES}; got {shown(entry)}.{hint}")


def _range(name: str, lower: Any, upper: Any) -> tuple[float, float]:
    pair = number(f"lower bound of {name}", lower), number(f"upper bound of {name}", upper)
    check_range(name, *pair)
    return pair
