"""What is audited: a detector with all of its public arguments, and how many features it has."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpoutlier._validate import one_of, parameter_error, positive_int
from dpoutlier._warn import nothing_to_protect
from dpoutlier.audit.engine_frame import ENGINES, engine_frame
from dpoutlier.detectors.load import load
from dpoutlier.detectors.registry import DETECTOR_NAMES, detector_class
from dpoutlier.exceptions import InvalidParameterError
from dpoutlier.features.bounds import Bounds
from dpoutlier.features.domain import Domain
from dpoutlier.model.file import PUBLIC_SUFFIX, has_secret_name
from dpoutlier.model.model import Model
from dpoutlier.privacy.guarantee import Neighbours, Purpose, as_epsilon

NOT_THESE = ("ledger", "dataset", "unsafe_seed", "n_jobs")
"""Arguments that an audit sets itself: it spends no budget, since its rows are made up."""


@dataclass(frozen=True, eq=False)
class Configuration:
    """A detector by name, with arguments. Configurations with the same text are equal.

    Parameters
    ----------
    detector : {"grid", "forest", "marginals"}
    arguments : dict
        Of the detector, ``epsilon`` among them.
    n_features : int
    engine : {"polars", "duckdb", "dask"}, optional
        Fit on a lazy frame of this engine; else in memory.
    stored : str
        The type of numbers in that frame, as Arrow calls it.
    """

    detector: str
    arguments: dict[str, Any]
    n_features: int = 1
    engine: str | None = field(default=None, repr=False)
    stored: str = field(default="float64", repr=False)

    @cached_property
    def _text(self) -> str:
        return repr((self, self.engine, self.stored))

    def __hash__(self) -> int:
        return hash(self._text)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Configuration) and other._text == self._text

    @property
    def epsilon(self) -> Fraction:
        epsilon = as_epsilon(self.arguments["epsilon"])
        if epsilon is None:
            raise parameter_error(
                "epsilon", "finite", self.arguments["epsilon"], "Without noise there is no claim to audit."
            )
        return epsilon

    @property
    def replaces(self) -> bool:
        """Whether neighbours have a person's rows replaced, and not one person more or less."""
        return bool(self.arguments.get("neighbours") == Neighbours.REPLACE_ONE)

    @property
    def rows_per_person(self) -> int:
        return int(self.arguments.get("rows_per_person", 1))

    @cached_property
    def counts(self) -> str:
        """The kind of counts of a fit, also where the number of cells decides."""
        return self.model().counts.kind

    @cached_property
    def estimates_cells(self) -> bool:
        """Whether the cells of a fit follow from something that it estimates with epsilon: bounds, or a number of rows."""
        return not {charge.purpose for charge in self.model().charges}.isdisjoint(
            (Purpose.BOUNDS, Purpose.RANGES, Purpose.ROW_COUNT)
        )

    def with_epsilon(self, epsilon: Any) -> Configuration:
        return replace(self, arguments={**self.arguments, "epsilon": epsilon})

    def estimator(self, unsafe_seed: int | None = None) -> Any:
        return detector_class(self.detector)(**self.arguments, n_jobs=1, unsafe_seed=unsafe_seed)

    def fit(self, rows: Any, unsafe_seed: int | None = None) -> Any:
        """A fitted detector: by the operating system's noise, or by noise that can be drawn again."""
        with nothing_to_protect():
            return self.estimator(unsafe_seed).fit(rows)

    def domain(self) -> Domain:
        """The domain, with the outer range where bounds are private."""
        declared = Bounds.of(
            self.arguments["features"], self.arguments.get("categories"), self.arguments.get("missing", "error")
        )
        return declared.domain(self.n_features)

    def table(self, places: NDArray[np.float64], people: NDArray[np.int64]) -> Any:
        """Rows at ``places`` in the unit cube, as this detector reads them; ``people`` says whose each of them is."""
        rows = made_rows(self.domain(), places, self.arguments.get("person"), people)
        return rows if self.engine is None else engine_frame(rows, self.engine, self.stored)

    def model(self, unsafe_seed: int = 0) -> Model:
        """A fit on no rows, for what is public in it."""
        nobody = self.table(np.empty((0, self.n_features)), np.empty(0, np.int64))
        model: Model = self.fit(nobody, unsafe_seed).model_
        return model


def made_rows(domain: Domain, places: NDArray[np.float64], person: str | None, people: NDArray[np.int64]) -> Any:
    """A table of made-up rows: an array if it may be one, else columns by name."""
    columns = [_column(domain, j, places[:, j]) for j in range(domain.n_features)]
    if person is None and domain.categories is None and domain.names is None:
        return np.column_stack(columns) if len(places) else np.empty((0, domain.n_features))
    names = domain.names or tuple(
        f"feature {j}" if person != f"feature {j}" else f"{person}, read" for j in range(domain.n_features)
    )
    table: dict[str, Any] = dict(zip(names, columns, strict=True))
    return pa.table(table if person is None else {**table, person: people})


def _column(domain: Domain, j: int, places: NDArray[np.float64]) -> Any:
    category, own = domain.category(j), coordinates(domain, j, places)
    if category is None:
        return own
    levels = list(category.levels)
    return pa.array([levels[int(number)] for number in own], pa.array(levels).type)


def coordinates(domain: Domain, j: int, places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Places between 0 and 1 as values of feature j, within the outer range if its bounds are private; a level i is ``i + 1/2``."""
    category = domain.category(j)
    if category is not None:
        return np.minimum(np.floor(places * len(category.levels)), len(category.levels) - 1) + 0.5
    outer = domain.outer[j] if domain.outer is not None else None
    low, high = (domain.lower[j], domain.upper[j]) if outer is None else outer
    return low * (1 - places) + high * places


def configuration_of_file(path: Path) -> tuple[Configuration, list[Any]]:
    """What a file asks to audit, and the epsilons to try: the model's own, or those that a TOML file lists."""
    if path.suffix == PUBLIC_SUFFIX:
        return _of_model(path)
    try:
        content = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InvalidParameterError(f"{path} cannot be read: {error.strerror or error}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidParameterError(
            f"{path} is neither a model file (*{PUBLIC_SUFFIX}) nor TOML: {error}. See docs/audit.md for an example."
        ) from None
    return _of_toml(path, content)


def _of_model(path: Path) -> tuple[Configuration, list[Any]]:
    fitted = load(path, secret=has_secret_name(path))
    arguments = {key: value for key, value in fitted.estimator().get_params().items() if key not in NOT_THESE}
    model = fitted.model_
    if model.merged is not None:
        raise InvalidParameterError(f"{path} is a merge of several fits: audit the fits that it was made of.")
    if not model.guarantee.private:
        raise InvalidParameterError(
            f"{path} promises nothing, so there is no claim to audit: {model.guarantee.voided_by[0]}"
        )
    name = next(name for name in DETECTOR_NAMES if detector_class(name).__name__ == model.detector)
    return Configuration(name, arguments, model.domain.n_features), [arguments["epsilon"]]


def _of_toml(path: Path, content: dict[str, Any]) -> tuple[Configuration, list[Any]]:
    content = dict(content)
    name = one_of(DETECTOR_NAMES, detector=content.pop("detector", None))
    given = content.pop("epsilon", None)
    epsilons = given if isinstance(given, list) else [given]
    if not epsilons or given is None:
        raise parameter_error(
            "epsilon", "a number or a list of numbers", given, f"Say in {path} which epsilon is claimed."
        )
    taken = sorted(set(content) & set(NOT_THESE))
    if taken:
        raise InvalidParameterError(
            f"{path}: {', '.join(taken)} cannot be given: an audit makes up rows and noise itself."
        )
    engine, stored = content.pop("engine", None), content.pop("stored", None)
    if engine is None and stored is not None:
        raise parameter_error("stored", "left out without an engine", stored, "Numbers in memory are float64.")
    in_engine = {} if engine is None else {"engine": one_of(ENGINES, engine=engine), "stored": stored or "float64"}
    features = content.pop("features", None)
    if features is not None and "n_features" in content:
        raise InvalidParameterError(f"{path}: give features or n_features, not both.")
    if features is not None:
        if not isinstance(features, str):
            raise parameter_error(
                "features",
                "the path of a features file",
                features,
                "Without a features file, give the number of features as n_features.",
            )
        content["features"] = Bounds.from_file(path.parent / features)
        n_features = content["features"].n_features
    else:
        n_features = positive_int(10_000, n_features=content.pop("n_features", 1))
        content["features"] = (0, 1)
    known = detector_class(name)(1).get_params()
    unknown = sorted(set(content) - set(known))
    if unknown:
        allowed = ", ".join(sorted(set(known) - {*NOT_THESE, "epsilon", "features"}))
        raise InvalidParameterError(
            f"{path}: unknown {', '.join(unknown)}. A {name} takes n_features or features, engine, stored, {allowed}."
        )
    configuration = Configuration(name, {**content, "epsilon": epsilons[0]}, n_features, **in_engine)
    for each in map(configuration.with_epsilon, epsilons):  # what cannot be fitted is refused now
        each.model()
        each.epsilon  # noqa: B018 - it raises if nothing is promised
    return configuration, epsilons
