"""Errors carry fields: they survive a process pool, and the command line shows them with the names of its options."""

import copy
import pickle
import warnings
from concurrent.futures import ProcessPoolExecutor

import pytest
import typer
from typer.testing import CliRunner

from dpoutlier import DPForest, exceptions
from dpoutlier._validate import one_of, parameter_error
from dpoutlier.cli.errors import errors_for_people
from dpoutlier.exceptions import (
    DpoutlierError,
    InvalidParameterError,
    PointsError,
    ServerError,
    ThresholdNotSetError,
    TooManyCellsError,
)

NAMED = parameter_error("target_fpr", "a number between 0 and 1", 7, "Give a share.")
MERGED = ThresholdNotSetError.no_histogram(merged=True)
ERRORS = [
    NAMED,
    parameter_error("x", "loadable", lambda: None),
    TooManyCellsError(name="bins", must="fewer", value="9", remedy="Use fewer.", code="c"),
    InvalidParameterError("two things do not fit."),
    InvalidParameterError(name="key", must="one line", code="invalid-key"),
    PointsError("a value is missing.", remedy="Fill it.", code="missing-value", row=3, column="age"),
    ServerError("no.", remedy="Ask.", code="busy", status=503, again=True),
    MERGED,
    ThresholdNotSetError.no_histogram(merged=False),
    *(
        kind("one sentence.", remedy="Then another.")
        for name in exceptions.__all__
        if issubclass(kind := getattr(exceptions, name), DpoutlierError)
    ),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_are_pickled_with_their_fields(error):
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), again.args, vars(again)) == (str(error), error.args, vars(error))


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_within_a_file_keeps_its_fields(error):
    placed = error.within("a.csv")
    assert type(placed) is type(error)
    assert (placed.problem, str(placed)) == (f"a.csv: {error.problem}", f"a.csv: {error}")
    assert vars(placed) == vars(error) | {"problem": placed.problem}


def fails():
    DPForest("many", features=(0, 1)).fit([[0.5]])


def test_an_error_in_another_process_comes_with_its_fields():
    with ProcessPoolExecutor(1) as pool, pytest.raises(InvalidParameterError) as caught:
        pool.submit(fails).result()
    assert (caught.value.name, caught.value.value) == ("epsilon", "'many'")


def test_the_text_is_the_problem_and_then_the_remedy():
    assert str(NAMED) == "target_fpr must be a number between 0 and 1, got 7. Give a share."
    assert (NAMED.name, NAMED.must, NAMED.value) == ("target_fpr", "a number between 0 and 1", "7")
    assert (NAMED.problem, NAMED.remedy) == ("target_fpr must be a number between 0 and 1, got 7.", "Give a share.")
    assert str(InvalidParameterError(name="key", must="one line")) == "key must be one line."
    for error in ERRORS:
        assert str(error) == f"{error.problem} {error.remedy}".rstrip()
        assert error.args == (str(error),)


def test_a_value_is_kept_as_text_and_not_as_itself():
    assert parameter_error("x", "small", 10**5000).value == "something too long to be shown (int)"
    with pytest.raises(InvalidParameterError) as caught:
        one_of(("a", "b"), kind=["c"])
    assert caught.value.value == "['c']"


def test_the_error_of_a_missing_value_says_where_it_is():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        detector = DPForest(1, features={"age": (0, 100)}, n_rows_hint=10).fit([[3.0]])
    with pytest.raises(PointsError) as caught:
        detector.outlier_scores([[1.0], [None]])
    assert (caught.value.code, caught.value.row, caught.value.column) == ("missing-value", 1, "age")
    with pytest.raises(ThresholdNotSetError) as unset:
        detector.set_threshold(target_fpr=0.1)
    assert unset.value.code == "no-histogram"


def shown(error, *arguments):
    """What a command prints that meets this error."""
    app = typer.Typer()

    @app.command()
    def command(
        context: typer.Context,
        model: str = typer.Argument(""),
        target_fpr: float = typer.Option(0, "--target-fpr"),
        threshold: float = typer.Option(0, "-t", "--threshold"),
    ) -> None:
        with errors_for_people(context):
            raise error

    result = CliRunner().invoke(app, [*arguments])
    return result.exit_code, result.stderr


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (NAMED, "--target-fpr must be a number between 0 and 1, got 7. Give a share."),
        (parameter_error("score", "a number", "x"), "--threshold must be a number, got 'x'."),
        (parameter_error("model", "an id", "?"), "MODEL must be an id, got '?'."),
        (parameter_error("depth", "small", 9), "depth must be small, got 9."),
        (
            InvalidParameterError(name="key", must="one line", remedy="Give it as key=.", code="invalid-key"),
            "key must be one line. Give it as --key-file FILE, or in the variable DPOUTLIER_KEY.",
        ),
        (
            MERGED,
            f"{MERGED.problem} Set a threshold on the outlier score yourself: --threshold SCORE.",
        ),
        (PointsError("target_fpr is a column.", remedy="Rename it."), "target_fpr is a column. Rename it."),
        (ServerError("busy: see target_fpr.", status=400, code="other"), "busy: see target_fpr."),
    ],
)
def test_the_command_line_names_its_options(error, text):
    assert shown(error) == (2, f"Error: {text}\n")


def test_a_machine_that_failed_is_another_exit_code():
    assert shown(ServerError("gone."))[0] == 1
    assert shown(ServerError("gone.", status=503))[0] == 1
    assert shown(OSError(28, "full"))[0] == 1
    assert shown(TypeError("no"))[0] == 2
