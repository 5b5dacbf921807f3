"""Errors for people: one line that says what is wrong and what to do, and an exit code."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from dpoutlier.exceptions import DpoutlierError, ServerError

__all__ = ["BAD_INPUT", "FAILED", "errors_for_people"]

FAILED, BAD_INPUT = 1, 2


@contextmanager
def errors_for_people() -> Iterator[None]:
    """Exit with 2 for input that cannot be used and with 1 if the machine failed; never with a stack trace."""
    try:
        yield
    except ServerError as error:
        _complain(_of_server(error))
        refused = error.status is not None and 400 <= error.status < 500
        raise typer.Exit(BAD_INPUT if refused else FAILED) from None
    except (DpoutlierError, ValueError, TypeError) as error:
        _complain(str(error))
        raise typer.Exit(BAD_INPUT) from None
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}.")
        raise typer.Exit(FAILED) from None


def _of_server(error: ServerError) -> str:
    """What a client says, with the names that its arguments have on the command line."""
    called = {"unauthorized": ("as key=...", "as --key-file FILE"), "certificate": ("as ca=", "as --ca FILE")}
    return str(error).replace(*called[error.code]) if error.code in called else str(error)


def _complain(text: str) -> None:
    from rich.console import Console  # noqa: PLC0415 - --help must not wait for it

    Console(file=sys.stderr, highlight=False, soft_wrap=True).print("[bold red]Error:[/] ", end="")
    sys.stderr.write(text + "\n")
