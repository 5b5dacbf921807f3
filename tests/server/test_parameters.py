"""What errors about parameters say: our words for each type of pydantic's errors, whatever pydantic's own text is."""

import pytest
from pydantic import ValidationError

from dpoutlier.server.error_responses import Refusal
from dpoutlier.server.parameters import MUST, ExplainQuery, ScoreQuery, refusal_of

SAID = [
    (ScoreQuery, {"missing": "x"}, "missing must be 'error' or 'null', got 'x'."),
    (ExplainQuery, {"missing": "null"}, "missing must be 'error', got 'null'."),
    (ScoreQuery, {"threshold": ""}, "threshold must be a number, such as 0.05, got ''."),
    (ScoreQuery, {"threshold": "1_0"}, "threshold must be a number, such as 0.05, got '1_0'."),
    (ScoreQuery, {"target_fpr": "-inf"}, "target_fpr must be greater than 0, got '-inf'."),
    (ScoreQuery, {"fdr": "0"}, "fdr must be greater than 0, got '0'."),
    (ScoreQuery, {"fdr": "1e0"}, "fdr must be less than 1, got '1e0'."),
    (ScoreQuery, {"target_fpr": "1", "threshold": "x"}, "target_fpr must be less than 1, got '1'."),
    (
        ExplainQuery,
        {"a" * 99: ""},
        f"unknown parameter '{'a' * 76}.... See /openapi.json for those that this route takes.",
    ),
]


@pytest.mark.parametrize(("query", "given", "wanted"), SAID)
def test_an_error_names_the_parameter_and_what_it_must_be(query, given, wanted):
    with pytest.raises(ValidationError) as caught:
        query.model_validate(given)
    refusal = refusal_of(caught.value.errors())
    assert (refusal.code, refusal.message) == ("bad-parameter", wanted)


def test_two_thresholds_are_refused():
    with pytest.raises(Refusal) as caught:
        ScoreQuery(target_fpr=0.1, threshold=1)
    assert caught.value.message == "give either target_fpr or threshold, not both."


def test_every_type_has_its_words_and_no_others_are_kept():
    met = set()
    for query, given, _ in SAID:
        with pytest.raises(ValidationError) as caught:
            query.model_validate(given)
        met.update(one["type"] for one in caught.value.errors())
    assert met == {*MUST, "extra_forbidden"}


def test_an_unknown_type_says_little_and_nothing_of_pydantics():
    error = {"type": "new_type", "loc": ("query", "missing"), "msg": "Input should not", "input": "x", "ctx": {"a": 1}}
    assert refusal_of([error]).message == "missing must be valid, got 'x'."
