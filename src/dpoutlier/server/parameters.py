"""The query parameters of routes, and the error response for those that cannot be used."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, Field, model_validator
from pydantic_core import PydanticKnownError
from starlette.datastructures import QueryParams

from dpoutlier.features.category import NUMBER
from dpoutlier.server.error_responses import Refusal, cut

LONGEST_NUMBER = 400
MUST = {
    "float_parsing": "be a number, such as 0.05",
    "greater_than": "be greater than {gt:g}",
    "less_than": "be less than {lt:g}",
    "literal_error": "be {expected}",
}
"""What a value must be, for each type of pydantic's errors that these parameters have."""


def _number(text: Any) -> Any:
    """A number as features take it, which is less than pydantic takes: no ``1_000``."""
    if isinstance(text, str) and (len(text) > LONGEST_NUMBER or not NUMBER.fullmatch(text)):
        raise PydanticKnownError("float_parsing")
    return text


Number = Annotated[float, BeforeValidator(_number)]
Share = Annotated[float, Field(gt=0, lt=1), BeforeValidator(_number)]


class ScoreQuery(BaseModel, extra="forbid", frozen=True):
    """How points are scored."""

    missing: Literal["error", "null"] = Field(
        default="error",
        description="What to do if a point lacks a value for a feature without a cell for missing values: raise an error, or "
        "give no score.",
    )
    target_fpr: Share | None = Field(
        default=None, description="Use the threshold for this false-positive rate, in this response only."
    )
    threshold: Number | None = Field(
        default=None, description="Use this outlier score as the threshold, in this response only."
    )
    fdr: Share | None = Field(
        default=None,
        description="Flag points at this false-discovery rate, among those of this request: adds p_value and alarm.",
    )

    @model_validator(mode="after")
    def _one_threshold(self) -> Self:
        if self.target_fpr is not None and self.threshold is not None:
            raise Refusal("bad-parameter", "give either target_fpr or threshold, not both.")
        return self


class ExplainQuery(BaseModel, extra="forbid", frozen=True):
    """Explanations need complete points, and have no threshold to move."""

    missing: Literal["error"] = Field(default="error", description="Points must not miss a value.")


def check_given_once(given: QueryParams) -> None:
    """Refuse a parameter that is given twice, because it is unclear which value counts."""
    names = [name for name, _ in given.multi_items()]
    doubled = next((name for name in names if names.count(name) > 1), None)
    if doubled is not None:
        raise Refusal("bad-parameter", f"the parameter {cut(doubled)} is given more than once. Give it once.")


def refusal_of(errors: Sequence[Any]) -> Refusal:
    """The error response for the first of pydantic's errors."""
    first = errors[0]
    name, must = first["loc"][-1], MUST.get(first["type"], "be valid").format(**first.get("ctx", {}))
    text = f"{name} must {must}, got {cut(first['input'])}"
    if first["type"] == "extra_forbidden":
        text = f"unknown parameter {cut(name)}. See /openapi.json for those that this route takes"
    return Refusal("bad-parameter", f"{text}.")
