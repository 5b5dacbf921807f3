"""Errors as one line that says what is wrong and what to do, and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperCommand

from dpoutlier.exceptions import DpoutlierError, InvalidParameterError, ServerError

FAILED, BAD_INPUT = 1, 2
OTHER_NAMES = {"score": "threshold"}
"""Arguments whose option has another name."""
KEY = "Give it as --key-file FILE, or in the variable DPOUTLIER_KEY."
REMEDIES = {
    "certificate": "Give the file of the authority that signed its certificate as --ca FILE, and use the name of the certificate "
    "in --url.",
    "invalid-key": KEY,
    "merged-model": "Set a threshold on the outlier score yourself: --threshold SCORE.",
    "no-histogram": "Fit with --target-fpr 0.05 (it takes --threshold-share of epsilon), or set a threshold on the outlier score "
    "yourself: --threshold SCORE.",
    "no-p-values": "Fit with --target-fpr 0.05 (it takes --threshold-share of epsilon), and do not merge.",
    "unauthorized": f"{KEY} The operator of the server makes keys.",
}
"""What to do on the command line, by the code of an error."""


@contextmanager
def errors_for_people(context: typer.Context | None = None) -> Iterator[None]:
    """Exit with 2 for input that cannot be used and with 1 if the machine failed; never with a stack trace.

    Errors name the options of the command, where its context is given.
    """
    try:
        yield
    except DpoutlierError as error:
        _complain(_in_options(error, context))
        refused = not isinstance(error, ServerError) or (error.status is not None and 400 <= error.status < 500)
        raise typer.Exit(BAD_INPUT if refused else FAILED) from None
    except (ValueError, TypeError) as error:
        _complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}.")
        raise typer.Exit(FAILED) from None


class Command(TyperCommand):
    """A command whose errors are one line, with the names of its own options."""

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        with errors_for_people(ctx):
            return super().invoke(ctx)


def _in_options(error: DpoutlierError, context: typer.Context | None) -> str:
    """The text of an error, with an option in place of the argument that it names, and what to do on the command line."""
    remedy = REMEDIES.get(error.code or "", error.remedy)
    if isinstance(error, InvalidParameterError) and error.name:
        name = _option(error.name, context)
        return str(InvalidParameterError(name=name, must=error.must, value=error.value, remedy=remedy))
    return f"{error.problem} {remedy}".rstrip()


def _option(name: str, context: typer.Context | None) -> str:
    """What the command calls an argument: an option or a word in capitals; the name itself if the command has none."""
    for parameter in context.command.params if context is not None else ():
        if parameter.name == OTHER_NAMES.get(name, name):
            return max(parameter.opts, key=len) if parameter.param_type_name == "option" else name.upper()
    return name


def _complain(text: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - --help must not wait for it

    Console(file=sys.stderr, highlight=False, soft_wrap=True).print("[bold red]Error:[/] ", end="")
    sys.stderr.write(text + "\n")
