"""Plain k-NN (Section 3.2 of the paper). Not private."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpoutlier._validate import checked_share, positive_int, share_below_half, true_or_false
from dpoutlier.detectors.base import Detector
from dpoutlier.detectors.old_names import accept_old_names
from dpoutlier.exceptions import ThresholdNotSetError
from dpoutlier.features.domain import Domain
from dpoutlier.privacy.guarantee import Guarantee
from dpoutlier.scoring.p_values import PValues, p_values_of
from dpoutlier.tables import convert
from dpoutlier.tables.rows import Positions
from dpoutlier.trusted.knn import ReferenceNeighbours


class KNN(Detector):
    r"""Euclidean k-NN outlier detection in the unit cube. **Not private**: it keeps the reference rows.

    The score of a point y with nearest reference rows :math:`x_1, \dots, x_k` is :math:`\|x_k - y\|_2` (eq. 1) or, weighted,
    :math:`\sum_i \|x_i - y\|_2` (eq. 2). With fewer than k reference rows, the absent ones count at the diameter of the cube.

    Parameters
    ----------
    features : dict, Bounds, PrivateBounds, pair or path, default=None
        Public range of each feature, such as ``{"age": (0, 120)}``; a pair means the same range for all features, and a path is
        a features file. Values outside count as the nearest bound. Never take the ranges from the reference rows; where nobody
        knows them, :class:`PrivateBounds` takes them from the rows here. Required, unless ``categories`` names all features.
    categories : dict, default=None
        Public levels of categorical features, by name or column number: a list of levels, or a :class:`Category`.
    missing : {'error', 'cell'} or list of features, default='error'
        Features that have a cell for missing values; 'cell' means all of them. For any other feature, a missing value is an
        error in a point to score. In a reference row it counts as the lower bound or the first level, without a message, which
        would reveal something.
    k : int, default=10
        Number of nearest reference rows.
    weighted : bool, default=False
        Score with the sum of the distances instead of the last distance.
    target_fpr : float, default=None
        Set the threshold so that about this share of the reference rows lies above it, above 0 and below 1. None: no threshold.
    outlier_share : float, default=0
        Declared share of outliers among the reference rows, below 0.5: public, never counted in the rows. The threshold then takes
        them for the rows with the largest scores.

    Attributes
    ----------
    n_features_in_ : int
        Number of features of the fit.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features. Present only if the features have names.
    offset_ : float
        Threshold on ``score_samples``. Present only with a threshold: from ``target_fpr`` or ``set_threshold``.
    guarantee_ : Guarantee
        It says that nothing is guaranteed.

    See Also
    --------
    GridKNN : The grid modification with exact counts.
    DPGridKNN : The private detector.

    References
    ----------
    .. [1] J. Rauch, I. E. Olatunji and M. Khosla, "Achieving differential privacy for k-nearest neighbors based outlier detection
       by data partitioning", arXiv:2104.07938, Section 3.2, eqs. 1 and 2.

    Examples
    --------
    >>> from dpoutlier import KNN
    >>> KNN(features=(0, 10), k=1).fit([[1.0], [2.0]]).outlier_scores([[4.0]]).round(6).tolist()
    [0.2]
    """

    k: Any
    weighted: Any
    target_fpr: Any
    outlier_share: Any

    @accept_old_names
    def __init__(
        self,
        features: Any = None,
        *,
        categories: Any = None,
        missing: Any = "error",
        k: int = 10,
        weighted: bool = False,
        target_fpr: float | None = None,
        outlier_share: float = 0.0,
    ) -> None:
        self._keep_arguments(locals())

    def fit(self, X: Any, y: Any = None) -> KNN:  # noqa: ARG002 - scikit-learn's signature
        """Keep the reference rows.

        Parameters
        ----------
        X : array, data frame, path or list of paths
            Reference rows, as for the other detectors; they must fit into memory.
        y : None, default=None
            Ignored. It is here because scikit-learn passes it.

        Returns
        -------
        self
            The fitted detector.

        Raises
        ------
        InvalidParameterError
            If an argument of the detector has no meaning.
        ReferenceDataError
            If the reference rows cannot be read.
        TypeError
            If ``X`` is a lazy frame: collect it first.

        Warns
        -----
        ColumnNamesWarning
            If bounds are given by name, and the columns of ``X`` have no names.

        See Also
        --------
        outlier_scores : Score points.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpoutlier import KNN
        >>> detector = KNN({"age": (0, 100)}, k=2).fit(pa.table({"age": [20, 30, 50]}))
        >>> detector.outlier_scores(pa.table({"age": [30, 90]})).round(6).tolist()
        [0.1, 0.6]
        """
        k = positive_int(k=self.k)
        weighted = true_or_false(weighted=self.weighted)
        fpr = None if self.target_fpr is None else checked_share(target_fpr=self.target_fpr)
        outlier_share = share_below_half(outlier_share=self.outlier_share)
        declared = self._declared()
        X = self._table(X, declared)
        if convert.is_lazy(X):
            raise TypeError(
                f"a lazy frame ({type(X).__name__}) was passed; collect it into a data frame: this keeps all rows."
            )
        domain = self._declared_domain(X, declared)
        self._neighbours = ReferenceNeighbours(X, domain, k, weighted=weighted)
        self._score_histogram = None if fpr is None else self._neighbours.score_histogram(fpr, outlier_share)
        self._score_threshold = (
            None if self._score_histogram is None or fpr is None else self._score_histogram.threshold(fpr)
        )
        self._keep_schema(domain)
        return self

    @property
    def guarantee_(self) -> Guarantee:
        """No guarantee: the detector keeps the reference rows."""
        return Guarantee(None, voided_by=("KNN keeps the reference rows: no noise, no guarantee.",))

    def _fitted_domain(self) -> Domain:
        return self._neighbours.domain

    def _outlier_scores(self, positions: Positions) -> NDArray[np.float64]:
        return self._neighbours.outlier_scores(positions)

    def _threshold(self) -> float | None:
        return self._score_threshold

    def _p_table(self) -> PValues:
        if self._score_histogram is None:
            raise ThresholdNotSetError("fit with target_fpr=0.05 before you ask for p-values.")
        return p_values_of(self._score_histogram)

    def _set_threshold(self, *, target_fpr: float | None, score: float | None) -> None:
        if target_fpr is None:
            self._score_threshold = score
        elif self._score_histogram is None:
            raise ThresholdNotSetError("fit with target_fpr=0.05 before you ask for another false-positive rate.")
        else:
            self._score_threshold = self._score_histogram.threshold(target_fpr)
