"""All mechanisms, by name: a new noise is its own file in this folder and one line here."""

from __future__ import annotations

from typing import Any

from dpoutlier._validate import bad
from dpoutlier.noise.laplace import DiscreteLaplace
from dpoutlier.noise.mechanism import Cost, Mechanism, Noise, Sensitivity
from dpoutlier.noise.permute_and_flip import PermuteAndFlip

__all__ = ["mechanism_from_json", "mechanism_to_json", "noise_costing"]

_MECHANISMS: dict[str, type[Mechanism]] = {one.name: one for one in (DiscreteLaplace, PermuteAndFlip)}

_NOISES: dict[bool, type[Noise]] = {True: DiscreteLaplace}
"""The noise of counts, by whether the guarantee is pure (delta = 0)."""

_UNNAMED = {"bounds": PermuteAndFlip.name}
"""What pays for a purpose where a file names no mechanism: for all other purposes, discrete Laplace noise."""


def noise_costing(cost: Cost, sensitivity: Sensitivity) -> Noise:
    """The noise that makes a release of this sensitivity cost at most so much."""
    noise = _NOISES.get(cost.delta == 0)
    if noise is None:
        raise bad("delta", "0", cost.delta, "All mechanisms that this version has are pure.")
    return noise.costing(cost, sensitivity)


def mechanism_to_json(mechanism: Mechanism, purpose: str) -> dict[str, Any]:
    """Its parameters, and its name if the purpose does not tell it."""
    named = mechanism.name != _UNNAMED.get(purpose, DiscreteLaplace.name)
    return {**({"mechanism": mechanism.name} if named else {}), **mechanism.to_json()}


def mechanism_from_json(content: dict[str, Any], purpose: str) -> Mechanism:
    """The mechanism whose parameters these are."""
    name = content.get("mechanism", _UNNAMED.get(purpose, DiscreteLaplace.name))
    return _MECHANISMS[name].from_json(content)
