"""What crosses the wire. Points and scores are read and written without these types, which would take longer than to score."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from dpoutlier.privacy.guarantee import Neighbours
from dpoutlier.server.error_responses import CODES

Value = float | int | str | bool | None
Infinite = Literal["inf", "-inf"]
"""JSON has no infinity."""


class Schema(BaseModel, use_attribute_docstrings=True):
    """Attributes' docstrings are their descriptions in OpenAPI."""


class PointsIn(Schema, extra="forbid"):
    """Points by the names of the features, or as lists in their order. null is a missing value."""

    points: list[dict[str, Value]] | list[list[Value]]


class ModelSummary(Schema):
    """A model in a list."""

    id: str
    release: str = Field(pattern="^[0-9a-f]{64}$")
    detector: str
    publishable: bool
    private: bool
    epsilon: str
    neighbours: str = Field(json_schema_extra={"enum": [*Neighbours]})
    n_features: int
    threshold: float | Infinite | None
    target_fpr: float | None


class ModelList(Schema):
    """The models that the key may use."""

    models: list[ModelSummary]


class Feature(Schema):
    """A feature with its public bounds or levels."""

    name: str
    kind: Literal["number", "category"]
    lower: float | None
    upper: float | None
    levels: list[str] | None
    ordered: bool | None
    numeric: bool | None
    """Whether levels are numbers, however they are written."""
    other: bool | None
    """Whether the last level stands for every value that is not declared."""
    missing: bool


class Limits(Schema):
    """The most that one request may bring."""

    rows: int
    bytes: int
    explain_rows: int


class FalseAlarms(Schema):
    """The share of normal points that the model's own threshold flags, with an interval."""

    expected: float
    lower: float
    upper: float
    level: float
    trusted: bool
    """Whether the interval is at most twice as wide as the expected share, and above 0."""


class PValues(Schema):
    """The p-value of each bin of scores: a score above levels[i - 1] and up to levels[i] has values[i]; above all, the last one."""

    levels: list[float]
    values: list[float]


class ModelDetail(ModelSummary):
    """A model with its features and its privacy statement."""

    named: bool
    features: list[Feature]
    person: str | None
    false_alarms: FalseAlarms | None
    """null without a threshold, or without a histogram of scores."""
    p_values: PValues | None
    """null where the model gives none."""
    limits: Limits
    statement: dict[str, Any]
    statement_text: str


class Scores(Schema):
    """Outlier scores, in the order of the points: larger is more outlying. null where a point has no score."""

    model: str
    release: str
    n: int
    threshold: float | Infinite | None
    outlier_score: list[float | None]
    outside_bounds: list[bool | None]
    prediction: list[Literal[1, -1] | None] | None
    p_value: list[float | None] = Field(default_factory=list)
    """How rarely a normal point scores as high. Only with the parameter fdr."""
    alarm: list[bool | None] = Field(default_factory=list)
    """Whether the point is flagged. Only with the parameter fdr."""


class ExplanationRow(Schema):
    """One feature of an explained point."""

    feature: str
    value: str
    adds: float
    instead: str
    then: str | None
    empty: float | None


class OneExplanation(Schema):
    """Why a point scores as it does."""

    outlier_score: float
    outside_bounds: bool
    prediction: Literal[1, -1] | None
    note: str
    region_note: str | None
    """Grid: the part of note that is about the region of the counterfactual."""
    counterfactual: str | None
    reached: bool | None
    """Whether the changed point would be usual."""
    contributions: list[float]
    empty: list[float | None]
    rows: list[ExplanationRow]


class Explanations(Schema):
    """Explanations, in the order of the points."""

    model: str
    release: str
    typical_score: float
    features: list[str]
    explanations: list[OneExplanation]


class Health(Schema):
    """Whether the server works."""

    status: str = Field(json_schema_extra={"enum": ["ok", "ready", "not ready"]})
    reasons: list[str] | None = None


class ErrorText(Schema):
    """What is wrong and what to do."""

    code: str = Field(json_schema_extra={"enum": [*CODES]})
    message: str
    row: int | None = Field(None, description="Of a missing value: its point, counted from 0.")
    column: str | None = Field(None, description="Of a missing value: its feature.")
    value: str | None = Field(None, description="What the point has there instead, cut to 80 characters.")
    must: str | None = Field(None, description="What it must be.")


class ErrorResponse(Schema):
    """Error response."""

    error: ErrorText
