"""``dpoutlier audit-log``: check the log of a server."""

from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.errors import FAILED, Command

audit_log = typer.Typer(
    name="audit-log", help="Check the audit log of 'dpoutlier serve'.", no_args_is_help=True, rich_markup_mode=None
)


@audit_log.callback()
def _group() -> None:
    """Check the audit log of 'dpoutlier serve'."""


@audit_log.command(cls=Command)
def verify(
    file: Annotated[Path, typer.Argument(help="The audit log.")],
    head: Annotated[
        str | None,
        typer.Option(
            help="Head that you noted earlier. If it is not in the log, the end was cut off or the log is another one."
        ),
    ] = None,
) -> None:
    """Check that no entry was changed, moved or left out, and print the head to note elsewhere.

    Example: dpoutlier audit-log verify audit.jsonl
    """
    from dpoutlier.server.audit_log import AuditError  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.server.audit_log import verify as verified  # noqa: PLC0415

    try:
        found = verified(file, head)
    except AuditError as error:
        typer.echo(f"NOT INTACT. {file}, {error}", err=True)
        raise typer.Exit(FAILED) from None
    typer.echo(f"entries  {found.entries}")
    typer.echo(f"first    {found.first or '-'}")
    typer.echo(f"last     {found.last or '-'}")
    typer.echo(f"refused  {found.refusals} (requests without a valid key, or with a key for something else)")
    if found.repairs:
        typer.echo(f"repairs  {found.repairs} (torn lines after a crash, marked in the log)")
    typer.echo(f"head     {found.head}")
