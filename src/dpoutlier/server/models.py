"""The models that a server answers with, by their ids; a file that is replaced is loaded again."""

from __future__ import annotations

import csv
import io
import math
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpoutlier._validate import parameter_error
from dpoutlier.detectors.batches import BatchScorer
from dpoutlier.detectors.constant_time import with_constant_time_counts
from dpoutlier.detectors.fitted import FittedDetector
from dpoutlier.detectors.frames import batch_scorer
from dpoutlier.detectors.load import read_model
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, SecretError
from dpoutlier.features.domain import Domain
from dpoutlier.model.file import PUBLIC_SUFFIX, SECRET_SUFFIX, has_secret_name
from dpoutlier.model.model import Model
from dpoutlier.model.name import MODEL_NAME
from dpoutlier.model.release_id import release_of
from dpoutlier.scoring.p_values import PValues
from dpoutlier.server import schemas
from dpoutlier.server.csv_points import csv_points
from dpoutlier.server.schemas import FalseAlarms, Feature, Infinite, Limits, ModelDetail, ModelSummary
from dpoutlier.server.settings import Settings
from dpoutlier.server.stamps import Stamp, stamp_of

MAX_SCORERS = 64
WARM_ROWS = 3
RETRY = 5.0
"""Seconds after which a file that could not be loaded is tried again."""
LOADED, MISSING = "loaded", "missing"


def named_models(given: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Ids and absolute paths from ``path`` or ``id=path``, as a command line has them."""
    found: dict[str, str] = {}
    for one in given:
        name, equals, path = one.partition("=")
        if not equals or "/" in name or Path(one).exists():
            name, path = _stem(Path(one)), one
        if not MODEL_NAME.fullmatch(name) or name in {".", ".."}:
            raise parameter_error(
                "the id of a model", "1 to 64 letters, digits, . _ or -", name[:80], "Give one: id=path."
            )
        if name in found:
            raise InvalidParameterError(f"two models have the id {name!r}. Give one of them another: id=path.")
        found[name] = str(Path(path).absolute())
    if not found:
        raise InvalidParameterError("no model to serve was given.")
    return tuple(found.items())


def _stem(path: Path) -> str:
    suffix = SECRET_SUFFIX if has_secret_name(path) else PUBLIC_SUFFIX
    return path.name.removesuffix(suffix)


def prepared(model: Model) -> Model:
    """The model in a form that answers in constant time, or an error. Every model that a worker scores with passes here."""
    if not model.guarantee.private:
        raise SecretError(
            "it gives no privacy (a twin, an infinite epsilon or seeded noise), so it is never served. Fit it with a DP "
            "detector and a finite epsilon."
        )
    return with_constant_time_counts(FittedDetector(model))._fitted_model()


def number(value: float | None) -> float | Infinite | None:
    """A number for JSON, which has no infinity."""
    if value is None or math.isfinite(value):
        return value
    return "inf" if value > 0 else "-inf"


class LoadedModel:
    """One model: its description, and what scores with it."""

    def __init__(self, name: str, model: Model, settings: Settings) -> None:
        self.name, self.model, self.release = name, model, release_of(model)
        self.detector = FittedDetector(model, 1)
        self.domain, self.person = model.domain, model.guarantee.person
        self.seconds_per_byte: dict[str, float] = {}
        self.layouts: dict[bytes, Any] = {}
        self.p_table, self.no_p_values = _p_table(model)
        self._scorers: dict[tuple[bool, float | None], BatchScorer] = {}
        self.summary = self._summary()
        self.detail = self._detail(settings).model_dump_json().encode()

    @classmethod
    def load(cls, name: str, path: str, settings: Settings) -> LoadedModel:
        """Read, check and warm a model."""
        model = read_model(path, secret=True)
        if model.guarantee.private and not model.publishable and not settings.secret_models:
            raise SecretError(
                f"{path} is a secret model. Nobody else may read its file. To serve it anyway, give --secret-models."
            )
        try:
            found = cls(name, prepared(model), settings)
        except SecretError as error:
            text = f"{path}: {error}"
        else:
            found.warm()
            return found
        raise SecretError(text)

    def warm(self) -> None:
        """Score and explain a made-up row, so that no request waits for kernels. Arrow arrays need kernels of their own."""
        row = _middle_row(self.domain)
        text = io.StringIO(newline="")
        csv.writer(text).writerows([self.domain.labels, *[row] * WARM_ROWS])
        columns = csv_points(text.getvalue().encode(), self.domain, None, WARM_ROWS).columns
        for own in (columns, [column.copy() for column in columns], [pa.array(c).to_numpy() for c in columns]):
            self.scorer().of_columns(own)
            gaps = [np.where(np.arange(WARM_ROWS) > 0, column, np.nan) for column in own]
            self.scorer(nulls=True).of_columns(gaps)
        self.detector.explain(np.array([row], object))

    def scorer(self, *, nulls: bool = False, threshold: float | None = None) -> BatchScorer:
        """The scorer with this threshold, or with the model's own."""
        found = self._scorers.get((nulls, threshold))
        if found is None:
            detector = FittedDetector(self.model, 1)
            if threshold is not None:
                detector.set_threshold(score=threshold)
            found = batch_scorer(detector, missing="null" if nulls else "error")
            while len(self._scorers) >= MAX_SCORERS:
                self._scorers.pop(list(self._scorers)[0], None)  # noqa: RUF015 - other threads may change it meanwhile
            self._scorers[nulls, threshold] = found
        return found

    def _summary(self) -> ModelSummary:
        statement, histogram = self.model.privacy_statement(), self.model.score_histogram
        return ModelSummary(
            id=self.name,
            release=self.release,
            detector=self.model.detector,
            publishable=self.model.publishable,
            private=statement.private,
            epsilon=statement.epsilon,
            neighbours=statement.neighbours,
            n_features=self.domain.n_features,
            threshold=number(self.model.threshold),
            target_fpr=None if histogram is None else histogram.target_fpr,
        )

    def _detail(self, settings: Settings) -> ModelDetail:
        statement = self.model.privacy_statement()
        return ModelDetail(
            **dict(self.summary),
            named=self.domain.names is not None,
            features=[_feature(self.domain, j) for j in range(self.domain.n_features)],
            person=self.person,
            false_alarms=_false_alarms(self.model),
            p_values=_p_values(self.p_table),
            limits=Limits(rows=settings.max_rows, bytes=settings.max_bytes, explain_rows=settings.explain_rows),
            statement=statement.to_dict(),
            statement_text=str(statement),
        )


def _feature(domain: Domain, j: int) -> Feature:
    category = domain.category(j)
    return Feature(
        name=domain.labels[j],
        kind="number" if category is None else "category",
        lower=domain.lower[j] if category is None else None,
        upper=domain.upper[j] if category is None else None,
        levels=None if category is None else list(category.names),
        ordered=None if category is None else category.ordered,
        numeric=None if category is None else category.numeric,
        other=None if category is None else category.other,
        missing=domain.has_missing_cell(j),
    )


def _false_alarms(model: Model) -> FalseAlarms | None:
    found = model.false_alarms()
    if found is None:
        return None
    return FalseAlarms.model_validate(found.to_dict())


def _p_table(model: Model) -> tuple[PValues | None, str]:
    """The p-value of each bin of scores; or none, and why."""
    try:
        return model.p_values(), ""
    except DpoutlierError as error:
        return None, error.problem


def _p_values(table: PValues | None) -> schemas.PValues | None:
    return None if table is None else schemas.PValues(levels=table.levels.tolist(), values=table.values.tolist())


def _middle_row(domain: Domain) -> list[Any]:
    """A point: some level, or the middle, of each feature."""
    return [
        domain.lower[j] / 2 + domain.upper[j] / 2 if category is None else category.levels[0]
        for j, category in enumerate(map(domain.category, range(domain.n_features)))
    ]


class LoadedModels:
    """All models of a server. A request keeps the model that it found here, also if the file is replaced meanwhile."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.served: dict[str, LoadedModel] = {}
        self.stamps: dict[str, Stamp | None] = {}
        self.missing: set[str] = set()
        self.failed: dict[str, tuple[float, type[Exception] | None]] = {}
        """When a file that could not be loaded is tried again, and the type of its error."""

    def load_all(self) -> None:
        for name, path in self.settings.models:
            self.stamps[name] = stamp_of(path)
            self.served[name] = LoadedModel.load(name, path, self.settings)

    def refresh(self, name: str, path: str) -> str | Exception | None:
        """Load a model again if its file was replaced: ``LOADED``, ``MISSING`` or the error, each once; the old model stays.

        A file that could not be loaded is tried again every few seconds: files may be too many for the moment, or its mode wrong.
        """
        stamp = stamp_of(path)
        if stamp is None:
            new = name not in self.missing
            self.missing.add(name)
            return MISSING if new else None
        again, known = self.failed.get(name, (math.inf, None))
        if stamp == self.stamps[name] and name not in self.missing and time.monotonic() < again:
            return None
        self.missing.discard(name)
        changed, self.stamps[name] = stamp != self.stamps[name], stamp
        try:
            self.served[name] = LoadedModel.load(name, path, self.settings)
        except Exception as error:  # noqa: BLE001 - whatever it is, the old one still answers
            self.failed[name] = (time.monotonic() + RETRY, type(error))
            return error if changed or type(error) is not known else None
        self.failed.pop(name, None)
        return LOADED
