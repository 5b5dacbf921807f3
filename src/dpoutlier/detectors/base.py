"""What all detectors share: scikit-learn's base, over scoring of their own."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn, Self

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from dpoutlier._validate import parameter_error
from dpoutlier.detectors.old_names import with_new_names
from dpoutlier.detectors.scores import ScoresPoints
from dpoutlier.exceptions import ColumnNamesWarning
from dpoutlier.features.bounds import Bounds
from dpoutlier.features.domain import Domain
from dpoutlier.tables import convert
from dpoutlier.tables.dataset import DatasetTable, is_dataset
from dpoutlier.tables.files import file_table
from dpoutlier.tables.paths import check_text_is_path

NO_NAMES = (
    "the bounds have names, but the columns of X have none. They are assumed to be {names}, in this order and in the units of the "
    "bounds. A scaler before the detector changes the units, and it stores exact means of the rows. Pass a data frame with names "
    "and without scaling, or give bounds without names."
)
MAX_SHOWN = 5


class Detector(ScoresPoints, OutlierMixin, BaseEstimator):  # type: ignore[misc] # scikit-learn is not typed
    """What all detectors share: they are scikit-learn estimators without ``fit_predict``."""

    features: Any
    categories: Any
    missing: Any

    def _keep_arguments(self, given: dict[str, Any]) -> None:
        """Make each argument of a constructor, whose ``locals()`` are given, an attribute, as scikit-learn wants it."""
        self.__dict__.update({name: value for name, value in given.items() if name != "self"})

    @property
    def fit_predict(self) -> NoReturn:
        """Not available: labels of the reference rows themselves are not private. Accessing it raises ``AttributeError``."""
        raise AttributeError(
            f"{type(self).__name__} has no fit_predict: it would publish labels of the reference rows, which the guarantee "
            "does not cover. Fit on reference rows, then predict on other points."
        )

    def set_params(self, **params: Any) -> Self:
        """Set parameters of the detector.

        Parameters
        ----------
        **params : dict
            Parameters by name. Old names are accepted until version 1.0, with a warning.

        Returns
        -------
        self
            The same detector, changed. An existing fit is not changed.

        Raises
        ------
        ValueError
            If the detector has no parameter of that name.
        TypeError
            If a parameter is given by its old and by its new name.

        Warns
        -----
        FutureWarning
            If a parameter is given by its old name.
        """
        super().set_params(**with_new_names(params))
        return self

    def _table(self, X: Any, declared: Bounds) -> Any:
        """What to read rows from: files and data sets batch by batch.

        An empty list has no columns; the bounds may tell how many it would have.
        """
        if isinstance(X, str | Path) or (isinstance(X, list) and X and all(isinstance(one, str | Path) for one in X)):
            for text in [X] if isinstance(X, str | Path) else X:
                if isinstance(text, str):
                    check_text_is_path(text)
            return file_table(X, declared.names, self._person_column)
        if is_dataset(X):
            return DatasetTable(X)
        n_features = declared.n_features
        empty = isinstance(X, list | tuple) and not X and n_features is not None
        return np.empty((0, n_features or 0)) if empty else X

    def _declared(self) -> Bounds:
        return Bounds.of(self.features, self.categories, self.missing)

    def _declared_domain(self, X: Any, declared: Bounds) -> Domain:
        """The domain of ``X`` from what is declared and from the schema, which is public."""
        n_columns, names = convert.number_of_columns(X), convert.column_names(X)
        if names is None and declared.names is not None and n_columns == len(declared.names):
            warnings.warn(NO_NAMES.format(names=_listed(declared.names)), ColumnNamesWarning, stacklevel=3)
        person = self._person_column
        if person is None:
            return declared.domain(n_columns, names)
        if names is None or person not in names:
            raise parameter_error("person", "the name of a column", person, "Pass a data frame that has this column.")
        if person in (declared.names or ()):
            raise parameter_error("person", "a column that is not a feature", person)
        return declared.domain(n_columns - 1, [name for name in names if name != person])

    @property
    def _person_column(self) -> Any:
        """The column that identifies people, for detectors that have this argument."""
        return getattr(self, "person", None)

    def _check_fitted(self) -> None:
        check_is_fitted(self)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True  # in reference rows, where a refusal would tell something
        return tags


def _listed(names: Sequence[str]) -> str:
    more = len(names) - MAX_SHOWN
    return ", ".join(names[:MAX_SHOWN]) + (f" and {more} more" if more > 0 else "")
