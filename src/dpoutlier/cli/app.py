"""The program ``dpoutlier``."""

import io
import sys
import warnings
from typing import Annotated

import typer

from dpoutlier.cli.audit import audit
from dpoutlier.cli.audit_log import audit_log
from dpoutlier.cli.demo import demo
from dpoutlier.cli.errors import Command
from dpoutlier.cli.explain import explain
from dpoutlier.cli.export import export
from dpoutlier.cli.features import features
from dpoutlier.cli.fit import fit
from dpoutlier.cli.inspect import inspect
from dpoutlier.cli.keys import keys
from dpoutlier.cli.ledger import ledger
from dpoutlier.cli.merge import merge
from dpoutlier.cli.old_names import accept_old_names
from dpoutlier.cli.plan import plan
from dpoutlier.cli.score import score
from dpoutlier.cli.serve import serve
from dpoutlier.cli.watch import watch

app = typer.Typer(
    name="dpoutlier",
    help="Outlier detection on data that must stay private: fit once, under differential privacy; then score for free.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
for command in (demo, features, plan, fit, score, watch, explain, export, merge, inspect, serve, audit):
    app.command(cls=Command, context_settings=accept_old_names(command))(command)
for name, group in (("ledger", ledger), ("keys", keys), ("audit-log", audit_log)):
    app.add_typer(group, name=name)


@app.callback(invoke_without_command=True)
def _version(
    version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False,
) -> None:
    if version:
        from importlib.metadata import version as installed  # noqa: PLC0415

        typer.echo(installed("dpoutlier"))
        raise typer.Exit


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a name that a terminal cannot show is no reason to stop
    warnings.formatwarning = _for_people
    app()


def _for_people(message: Warning | str, *_: object, **__: object) -> str:
    """A warning without the place in the code."""
    return f"Warning: {message}\n"
