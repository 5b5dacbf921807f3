"""All mechanisms, by name: a new noise is its own file in this folder and one line here."""

from importlib import import_module
from typing import Any, Literal, NamedTuple

from dpoutlier._validate import parameter_error
from dpoutlier.noise.mechanism import Cost, Mechanism, Noise, Sensitivity


class Registered(NamedTuple):
    """A mechanism: its name in files, its module and class, and the guarantees whose noise it is."""

    name: str
    module: str
    class_name: str
    noise_of: Literal["pure", "approximate"] | None = None
    """Guarantees without or with a delta; None: it adds no noise."""


_REGISTERED = (
    Registered("discrete-laplace", "dpoutlier.noise.laplace", "DiscreteLaplace", noise_of="pure"),
    Registered("permute-and-flip", "dpoutlier.noise.permute_and_flip", "PermuteAndFlip"),
)

_UNNAMED = {"bounds": "permute-and-flip", "ranges": "permute-and-flip"}
"""The mechanism of a purpose where a file names none; for all other purposes it is discrete Laplace noise."""


def _class_of(one: Registered) -> Any:
    """Its class. Nothing is imported before it is used: ``import dpoutlier`` must not wait for kernels."""
    return getattr(import_module(one.module), one.class_name)


def noise_costing(cost: Cost, sensitivity: Sensitivity) -> Noise:
    """The noise that makes a release of this sensitivity cost at most so much."""
    wanted = "approximate" if cost.delta else "pure"
    for one in _REGISTERED:
        if one.noise_of == wanted:
            noise: Noise = _class_of(one).costing(cost, sensitivity)
            return noise
    raise parameter_error("delta", "0", cost.delta, "All noise that this version has is pure.")


def mechanism_to_json(mechanism: Mechanism, purpose: str) -> dict[str, Any]:
    """Its parameters, and its name if the purpose does not tell it."""
    named = mechanism.name != _UNNAMED.get(purpose, "discrete-laplace")
    return {**({"mechanism": mechanism.name} if named else {}), **mechanism.to_json()}


def mechanism_from_json(content: dict[str, Any], purpose: str) -> Mechanism:
    """The mechanism whose parameters these are."""
    name = content.get("mechanism", _UNNAMED.get(purpose, "discrete-laplace"))
    for one in _REGISTERED:
        if one.name == name:
            found: Mechanism = _class_of(one).from_json(content)
            return found
    raise parameter_error("mechanism", "one of " + ", ".join(one.name for one in _REGISTERED), name)
