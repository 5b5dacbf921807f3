"""What all detectors over a partition share, private or not: they hold a model, and a model is what was released."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np

from dpoutlier._validate import checked_share, is_whole, parameter_error, share_below_half
from dpoutlier._warn import note_fit, warn_large_epsilon, warn_threshold, warn_unsafe
from dpoutlier.detectors.base import Detector
from dpoutlier.detectors.fitted import HoldsModel
from dpoutlier.exceptions import InvalidParameterError, LedgerError, LedgerWarning
from dpoutlier.features.axes import Axes
from dpoutlier.features.bounds import Bounds
from dpoutlier.features.domain import Domain
from dpoutlier.ledger.ledger import Ledger
from dpoutlier.model.model import Model
from dpoutlier.model.plan import USUAL_SHARE, Plan, share_for_threshold
from dpoutlier.model.release_id import release_id
from dpoutlier.partitions.base import Partition
from dpoutlier.privacy.guarantee import LEAKED, Guarantee, Purpose, as_epsilon
from dpoutlier.privacy.receipt import Receipt, checked_name
from dpoutlier.scoring.base import Scorer
from dpoutlier.scoring.threads import thread_count
from dpoutlier.tables import convert
from dpoutlier.tables.batched import BatchedTable
from dpoutlier.tables.dataset import is_dataset
from dpoutlier.trusted.fit import fit_model

NOT_PRIVATE = "{name} is the non-private twin: exact counts, no noise, no guarantee."
INFINITE = "epsilon is infinite: exact counts, no noise, no guarantee."
SEEDED = "unsafe_seed makes the noise predictable to anyone who knows or guesses the seed."


class PartitionedDetector(HoldsModel, Detector):
    """What all detectors over a partition share: a fit counts rows in public cells, and its result is ``model_``."""

    @abstractmethod
    def _make_scorer(self) -> Scorer: ...

    @abstractmethod
    def _partition_maker(self, axes: Axes) -> Callable[[int | None, float], Partition]:
        """How to make the partition from (number of rows or None, epsilon per row)."""

    @abstractmethod
    def _plan(self, domain: Domain, bounds_share: float | None) -> Plan:
        """Every public choice; ``bounds_share`` of epsilon goes to private bounds; None without any."""

    def fit(self, X: Any, y: Any = None) -> Self:  # noqa: ARG002 - scikit-learn's signature
        """Fit on reference rows.

        A private detector spends its ``epsilon`` with each fit: fits on the same people add up. Everything after the fit has no
        privacy cost.

        Parameters
        ----------
        X : array, frame, path or list of paths
            Reference rows: an array; a data frame; a lazy frame of Polars, DuckDB, Dask or Spark; a ``pyarrow.dataset.Dataset``; or
            files (.parquet or .csv): a path, a list of paths, a pattern such as ``"rows/*.parquet"``, or a folder of .parquet
            files. All but arrays and data frames may be larger than memory. From files, only the columns that ``features`` and
            ``categories`` name are read, or all of them if they give no names. Everywhere else, every column must be a feature.
        y : None, default=None
            Ignored. It is here because scikit-learn passes it.

        Returns
        -------
        self
            The fitted detector.

        Raises
        ------
        InvalidParameterError
            If an argument of the detector has no meaning. No row was read and nothing was charged.
        TooManyCellsError
            If a grid has more than 2**128 cells: use fewer bins or features.
        ReferenceDataError
            If the reference rows cannot be read.
        LedgerError
            If the ledger is missing, damaged or an old copy, has no budget for ``dataset``, or cannot account for this fit.
        BudgetExceededError
            If the ledger's budget does not cover the fit. No row was read and nothing was charged.

        Warns
        -----
        UnsafeWarning
            If a private detector guarantees nothing: with infinite epsilon, ``unsafe_seed`` or bounds from the reference rows.
        LargeEpsilonWarning
            If epsilon is above 10.
        ThresholdWarning
            If the threshold of ``target_fpr`` cannot be trusted.
        RepeatedFitWarning
            At the second private fit of a process without a ledger.
        ColumnNamesWarning
            If bounds are given by name, and the columns of ``X`` have no names.
        LedgerWarning
            If the fit was charged and made, but its release could not be noted in the ledger.

        See Also
        --------
        outlier_scores : Score points.
        predict : Label points by the threshold.
        privacy_statement : What the fit guarantees.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import DPForest
        >>> reference = pa.table({"age": [20, 30, 40, 50] * 25, "bmi": [21.0, 24.0, 27.0, 30.0] * 25})
        >>> detector = DPForest(epsilon=1, features={"age": (0, 120), "bmi": (10, 80)}, n_trees=4, depth=3)
        >>> detector.fit(reference).outlier_scores(pa.table({"age": [35], "bmi": [25.0]})).shape
        (1,)
        """
        declared = self._declared()
        self._check_shown(X)
        X = self._table(X, declared)
        domain = self._declared_domain(X, declared)
        self.model_ = fit_model(X, self._plan(domain, declared._share()))
        self._keep_schema(domain)
        self._released(self.model_)
        found = self.model_.false_alarms()
        if found is not None and not found.trusted:
            warn_threshold(stacklevel=2)
        return self

    def _check_shown(self, X: Any) -> None:
        """Refuse tables whose columns are not known before their rows are read, if that matters."""

    def _released(self, model: Model) -> None:
        """Do what a complete fit needs."""

    @classmethod
    def _of_model(cls, model: Model) -> PartitionedDetector:
        """A fitted detector from a model that was loaded."""
        detector = cls(**cls._arguments_of(model))
        detector.model_ = model
        detector._keep_schema(model.domain)
        return detector

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        histogram, leaked = model.score_histogram, LEAKED in model.guarantee.voided_by
        looked = model.domain.declared is not None or any(one.purpose == Purpose.RANGES for one in model.charges)
        return {
            "features": Bounds._of_domain(model.domain, _share_for_bounds(model), leaked=leaked),
            "target_fpr": None if histogram is None else histogram.target_fpr,
            "outlier_share": 0.0 if histogram is None else histogram.outlier_share,
            # The parts of a merge share their ranges, whoever has found them.
            "tight_ranges": model.merged is not None or not looked,
        }

    def _leak(self) -> list[str]:
        """Why the bounds void a guarantee, if they do."""
        return [LEAKED] if isinstance(self.features, Bounds) and self.features.leaked else []

    @abstractmethod
    def _by_rule(self) -> bool:
        """Whether some of the partition is left to a rule."""

    _rule_needs_rows = True
    """Whether that rule needs a number of rows."""

    def _tight(self) -> bool:
        """Whether declared ranges are taken as they are. Whoever fixes the partition means it on them, unless told otherwise."""
        if self.tight_ranges == "auto":
            return bool(self._leak()) or not self._by_rule()
        if not isinstance(self.tight_ranges, bool | np.bool_):
            raise parameter_error("tight_ranges", "True, False or 'auto'", self.tight_ranges)
        return bool(self.tight_ranges)

    def _needs_rows(self) -> bool:
        """Whether anything needs a number of rows."""
        return (self._by_rule() and self._rule_needs_rows) or not self._tight()

    def _target_fpr(self) -> float | None:
        return None if self.target_fpr is None else checked_share(target_fpr=self.target_fpr)

    target_fpr: Any
    outlier_share: Any
    tight_ranges: Any


def _share_for_bounds(model: Model) -> float:
    """Share of epsilon that bounds cost; of a merge, in its first part."""
    charges = model.charges if model.merged is None else model.merged.parts[0].charges
    total = sum((charge.epsilon for charge in charges), Fraction(0))
    return next((float(charge.epsilon / total) for charge in charges if charge.purpose == Purpose.BOUNDS), 0.1)


class ExactDetector(PartitionedDetector):
    """What the non-private twins share: exact counts, and no guarantee."""

    def _plan(self, domain: Domain, bounds_share: float | None) -> Plan:
        name = type(self).__name__
        return Plan(
            detector=name,
            domain=domain,
            make_partition=self._partition_maker(domain.axes),
            scorer=self._make_scorer(),
            guarantee=Guarantee(None, voided_by=(NOT_PRIVATE.format(name=name), *self._leak())),
            bounds_share=Fraction(repr(bounds_share or 0)),
            tight_ranges=self._tight(),
            n_rows_hint="estimate" if self._needs_rows() else None,  # at no price, and exact: nothing here is private
            target_fpr=self._target_fpr(),
            outlier_share=share_below_half(outlier_share=self.outlier_share),
            n_jobs=thread_count(self.n_jobs),
        )


class PrivateDetector(PartitionedDetector):
    """What the private detectors share: each fit costs ``epsilon``, and only noisy counts are released."""

    epsilon: Any
    neighbours: Any
    rows_per_person: Any
    person: Any
    n_rows_hint: Any
    threshold_share: Any
    ledger: Any
    dataset: Any
    unsafe_seed: Any

    def _guarantee(self) -> Guarantee:
        epsilon = as_epsilon(self.epsilon)
        voided = [INFINITE] if epsilon is None else []
        voided += self._leak()
        voided += [SEEDED] if self.unsafe_seed is not None else []
        for reason in voided:
            warn_unsafe(reason, stacklevel=4)
        if not voided and epsilon is not None:
            warn_large_epsilon(float(epsilon), stacklevel=4)
        return Guarantee(epsilon, self.neighbours, self.rows_per_person, voided_by=tuple(voided), person=self._person())

    def _person(self) -> str | None:
        if self.person is not None and (not isinstance(self.person, str) or not self.person.isprintable()):
            raise parameter_error("person", "the name of a column, or None", self.person)
        return self.person

    def _checked_n_rows_hint(self) -> int | Literal["estimate"] | None:
        n_rows_hint = self._given_n_rows_hint()
        if n_rows_hint is None and self.tight_ranges != "auto" and not self._tight():
            raise InvalidParameterError(
                "tight_ranges=False needs n_rows_hint, a public guess of the number of rows, or 'estimate' to spend 5 % of epsilon "
                "on it."
            )
        used = self._needs_rows() or (self.target_fpr is not None and n_rows_hint != "estimate")
        return n_rows_hint if used else None  # nothing would use it, so no epsilon goes to it

    def _given_n_rows_hint(self) -> int | Literal["estimate"] | None:
        if self.n_rows_hint is None or self.n_rows_hint == "estimate":
            return "estimate" if self.n_rows_hint == "estimate" else None
        if not is_whole(self.n_rows_hint) or not 1 <= self.n_rows_hint <= 2**53:
            raise parameter_error(
                "n_rows_hint",
                "a public guess of the number of rows, 'estimate', or None",
                self.n_rows_hint,
                "Never pass the true number: the model would contain it.",
            )
        return int(self.n_rows_hint)

    def _threshold_share(self, guarantee: Guarantee) -> Fraction:
        if not isinstance(self.threshold_share, str):
            return Fraction(repr(checked_share(threshold_share=self.threshold_share)))
        if self.threshold_share != "auto":
            raise parameter_error("threshold_share", "'auto' or a number between 0 and 1", self.threshold_share)
        target, n_rows = self._target_fpr(), self._given_n_rows_hint()
        if target is None or guarantee.epsilon is None or not isinstance(n_rows, int):
            return USUAL_SHARE
        return share_for_threshold(n_rows, float(guarantee.epsilon / guarantee.sensitivity().l1), target)

    def _ledger(self) -> Ledger | None:
        if (self.ledger is None) != (self.dataset is None):
            given, lacks = ("ledger", "dataset") if self.dataset is None else ("dataset", "ledger")
            raise InvalidParameterError(
                f"{given} is given without {lacks}: a fit is charged to the budget that a ledger has for a data set. Give both, or "
                "neither."
            )
        if self.ledger is None or isinstance(self.ledger, Ledger):
            return self.ledger
        if not isinstance(self.ledger, str | Path):
            raise parameter_error("ledger", "a Ledger, the path of one, or None", self.ledger)
        return Ledger(self.ledger)

    def _count_choices(self) -> dict[str, Any]:
        """How the counts are held, for the plan of a detector that lets the user choose."""
        return {}

    def _check_shown(self, X: Any) -> None:
        files = isinstance(X, list) and len(X) > 0 and all(isinstance(one, str | Path) for one in X)
        shown = files or isinstance(X, np.ndarray | BatchedTable | str | Path) or is_dataset(X)
        if self.ledger is None or shown or convert.is_lazy(X) or convert.is_frame(X):
            return
        raise InvalidParameterError(
            f"with a ledger X must be an array, a data frame, a query or files, got {type(X).__name__}: the number of its columns "
            "is not known before rows are read, and no row may be read before it is paid for. Pass numpy.asarray(X)."
        )

    def _reserve(self) -> Callable[[Guarantee, str], Receipt] | None:
        ledger = self._ledger()
        return None if ledger is None else partial(ledger.reserve, checked_name(dataset=self.dataset))

    def _released(self, model: Model) -> None:
        ledger = self._ledger()
        if ledger is None and model.guarantee.private:
            note_fit(stacklevel=3)
        if ledger is None or model.receipt is None:
            return
        try:
            ledger.commit(model.receipt, release_id(model))
        except (LedgerError, OSError) as error:
            warnings.warn(
                f"the fit is complete, but noting its release in the ledger failed: {error} {ledger.outcome(model.receipt)}",
                LedgerWarning,
                stacklevel=3,
            )

    def _plan(self, domain: Domain, bounds_share: float | None) -> Plan:
        if self.unsafe_seed is not None and not is_whole(self.unsafe_seed):
            raise parameter_error("unsafe_seed", "a whole number or None", self.unsafe_seed)
        guarantee = self._guarantee()
        return Plan(
            detector=type(self).__name__,
            domain=domain,
            make_partition=self._partition_maker(domain.axes),
            scorer=self._make_scorer(),
            guarantee=guarantee,
            bounds_share=Fraction(repr(bounds_share or 0)),
            tight_ranges=self._tight(),
            **self._count_choices(),
            n_rows_hint=self._checked_n_rows_hint(),
            target_fpr=self._target_fpr(),
            outlier_share=share_below_half(outlier_share=self.outlier_share),
            threshold_share=self._threshold_share(guarantee),
            unsafe_seed=self.unsafe_seed,
            n_jobs=thread_count(self.n_jobs),
            reserve=self._reserve(),
        )

    @classmethod
    def _arguments_of(cls, model: Model) -> dict[str, Any]:
        guarantee = model.guarantee
        # A merge was never fitted with a number of rows or a threshold of its own.
        paid = {charge.purpose: charge.epsilon for charge in model.charges if model.merged is None}
        return {
            **super()._arguments_of(model),
            "epsilon": float("inf") if guarantee.epsilon is None else guarantee.epsilon,
            "neighbours": guarantee.neighbours.value,
            "rows_per_person": guarantee.rows_per_person,
            "person": guarantee.person,
            # Without its ledger, which must be given again: each further fit is a release of its own.
            "dataset": None if model.receipt is None else model.receipt.dataset,
            "n_rows_hint": "estimate" if Purpose.ROW_COUNT in paid else model.n_rows_hint,
            "threshold_share": float(paid[Purpose.THRESHOLD] / sum(paid.values()))
            if Purpose.THRESHOLD in paid
            else "auto",
        }
