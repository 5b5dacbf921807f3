"""Call every public member of an object, and of every object of this package that can be reached from it."""

import copy
import inspect
import pickle
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

import dpoutlier
from dpoutlier import Guarantee, Neighbours, secrets_may_travel

from .frozen_world import texts_of
from .plain_values import plain, state
from .reference_tables import POINTS

NOT_OURS = ("builtins", "enum", "typing", "collections", "abc", "prometheus_client", "threading")


class Walk(NamedTuple):
    """What all members returned, by ``Class.member``, and members of public classes that are not known how to call.

    Parts of a model that are not public by themselves may have methods that take more than is known here. They are passed over:
    all that such a part keeps is collected, and its methods know nothing else.
    """

    values: dict[str, Any]
    unknown: list[str]
    raised: dict[str, str]
    """Members that raise, and what."""


class Raised(list[str]):
    """An error, as texts."""


class Named(dict[str, Any]):
    """Arguments by name."""


def members(kind: type) -> list[str]:
    """Public names of a class, its own and inherited ones, without those of Python's own types."""
    return [name for name in sorted(dir(kind)) if not name.startswith("_") and not _of_python(kind, name)]


def _of_python(kind: type, name: str) -> bool:
    owner = next((base for base in kind.__mro__ if name in base.__dict__), None)
    return owner is not None and owner.__module__.split(".")[0] in NOT_OURS


# What to pass -------------------------------------------------------------------------------------------------------------


def points_for(one: Any) -> Any:
    """Points for whatever scores: by name, or by number where the model knows no names."""
    domain = _domain(one)
    if domain is None or domain.names is not None:
        return pd.DataFrame(POINTS)
    return np.array([POINTS["a"], POINTS["c"]]).T


def _domain(one: Any) -> Any:
    fitted = getattr(one, "detector_", one)
    return fitted._fitted_domain() if hasattr(type(fitted), "_fitted_domain") else getattr(one, "domain", None)


def positions_for(one: Any) -> np.ndarray:
    """The same points on the lattice; of parts that do not know their features, points in the middle."""
    domain = _domain(one)
    n_features = domain.n_features if domain is not None else getattr(one, "n_features", 3)
    places = np.full((2, n_features), 2**31, np.uint32)
    places[1] = 2**30
    return places


def _paid(ledger: Any) -> Any:
    return next(one for one in ledger.spendings() if one.number == ledger.receipt.entry)


PARAMETERS: dict[str, Callable[[Any], Any]] = {
    "X": points_for,
    "cells_per_row": lambda _: 3,
    "content": lambda one: one.to_json(),
    "dataset": lambda _: "patients",
    "feature": lambda _: "a",
    "guarantee": lambda _: Guarantee(Fraction(1, 8), rows_per_person=2, person="who"),
    "j": lambda _: 0,
    "neighbours": lambda _: Neighbours.REPLACE_ONE,
    "positions": positions_for,
    "score": lambda _: 1.25,
    "target_fpr": lambda _: 0.2,
    "value": lambda _: "low",
}
"""By the name of a parameter: what to pass for it."""

CALLS: dict[str, Callable[[Any], list[Any]]] = {
    "score_one": lambda _: [{name: own[0] for name, own in POINTS.items()}],
    "set_threshold": lambda _: [Named(score=0.5)],
    "save": lambda one: [f"saved by {type(one).__name__}"],
    "export_scores": lambda one: [f"terms of {type(one).__name__}.parquet", Named(secret=True)],
    "Bounds.domain": lambda _: [3, ["a", "b", "c"]],
    "Bounds.from_file": lambda _: ["features.toml"],
    "Bounds.of": lambda _: [{"a": (0, 1)}],
    "Ledger.charge": lambda _: ["patients", "1/16", "by another program"],
    "Ledger.check_paid": lambda one: [one.receipt, _paid(one).release, PARAMETERS["guarantee"](one)],
    "Ledger.commit": lambda one: [one.reserve("patients", PARAMETERS["guarantee"](one), "DPForest"), "0" * 64],
    "Ledger.create": lambda _: ["another.ledger"],
    "Ledger.move_anchor": lambda _: ["another.anchor"],
    "Ledger.open_budget": lambda _: ["others", 1],
    "Ledger.outcome": lambda one: [one.receipt],
    "Ledger.reserve": lambda one: ["patients", PARAMETERS["guarantee"](one), "DPForest"],
}
"""By the name of a method, alone or after that of its class: arguments by place, and those by name."""

PUBLIC = frozenset(dpoutlier.__all__)
LEFT_TO_SCENARIOS = {"fit"}
"""Members that a walk does not call: a scenario of its own has to."""


def how_to_call(kind: type, name: str) -> str | None:
    """None if a walk can call the member; else what is missing."""
    found = inspect.getattr_static(kind, name, None)
    if name in LEFT_TO_SCENARIOS:
        return "it is left to a scenario of its own"
    if name in CALLS or f"{kind.__name__}.{name}" in CALLS or not _is_method(found):
        return None
    missing = [own for own in _required(found) if own not in PARAMETERS]
    return f"it is not known what to pass as {', '.join(missing)}" if missing else None


def _is_method(found: Any) -> bool:
    """Whether what stands in a class is called, and not just looked at."""
    return isinstance(found, classmethod | staticmethod) or (callable(found) and not inspect.isclass(found))


def _required(found: Any) -> list[str]:
    function = getattr(found, "__func__", found)
    parameters = list(inspect.signature(function).parameters.values())
    own = parameters if isinstance(found, staticmethod) else parameters[1:]
    return [
        one.name for one in own if one.default is one.empty and one.kind not in {one.VAR_POSITIONAL, one.VAR_KEYWORD}
    ]


def _arguments(one: Any, name: str) -> tuple[list[Any], dict[str, Any]]:
    known = CALLS.get(f"{type(one).__name__}.{name}") or CALLS.get(name)
    if known is None:
        required = _required(inspect.getattr_static(type(one), name))
        return [], {own: PARAMETERS[own](one) for own in required}
    given = known(one)
    named = next((own for own in given if isinstance(own, Named)), Named())
    return [own for own in given if own is not named], named


# Walking ------------------------------------------------------------------------------------------------------------------


def walk(root: Any) -> Walk:
    """All that an object shows: each member of it, of what the members give, and so on; of each class one object."""
    values: dict[str, Any] = {}
    unknown: list[str] = []
    raised: dict[str, str] = {}
    left, known = [root], {type(root)}
    while left:
        one = left.pop(0)
        for name, value in _values_of(one, unknown):
            values[name] = plain(value)
            if isinstance(value, Raised):
                raised[name] = value[0]
            for other in _ours(value):
                if type(other) not in known:
                    known.add(type(other))
                    left.append(other)
    values["copies"] = plain(_copies(root))
    return Walk(values, unknown, raised)


def _values_of(one: Any, unknown: list[str]) -> Iterator[tuple[str, Any]]:
    kind = type(one)
    kept = [name for name in state(one) if not name.startswith("_")]
    yield kind.__name__, one
    if hasattr(one, "_repr_html_"):  # what a notebook shows; scikit-learn numbers it
        yield f"{kind.__name__} as a page", re.sub(r"id-\d+", "id", one._repr_html_())
    for name in dict.fromkeys([*members(kind), *kept]):
        missing = how_to_call(kind, name) if name not in kept else None
        if missing is not None:
            if name not in LEFT_TO_SCENARIOS and kind.__name__ in PUBLIC:
                unknown.append(f"{kind.__name__}.{name}: {missing}")
            continue
        yield f"{kind.__name__}.{name}", _value_of(one, name)


def _value_of(one: Any, name: str) -> Any:
    """What a member gives, or the error that it raises. It is asked of a copy, so that no member changes what others return."""
    parameters = getattr(type(one), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        with suppress(Exception):
            one = copy.deepcopy(one)
    try:
        found = getattr(one, name)
        if not _is_method(inspect.getattr_static(type(one), name, None)) or not callable(found):
            return found() if inspect.ismethod(found) and not _required(found.__func__) else found
        given, named = _arguments(one, name)
        return found(*given, **named)
    except Exception as error:  # noqa: BLE001 - the error is the result
        return Raised(texts_of(error))


def _ours(value: Any) -> Iterator[Any]:
    """Objects of this package in a value."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if type(value).__module__.startswith("dpoutlier."):
        yield value
    elif isinstance(value, list | tuple):
        for own in value:
            yield from _ours(own)


def _copies(one: Any) -> dict[str, Any]:
    """Copies and pickles, as text where there is none."""
    found: dict[str, Any] = {}
    for name, make in {"copy": copy.copy, "deep copy": copy.deepcopy, "pickle": pickle.dumps}.items():
        try:
            found[name] = make(one)
        except Exception as error:  # noqa: BLE001
            found[name] = texts_of(error)
    with suppress(Exception), secrets_may_travel():
        found["pickle of a secret"] = pickle.dumps(one)
    return found
