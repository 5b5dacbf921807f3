"""``dpoutlier keys``: keys of a server's clients."""

from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.errors import Command
from dpoutlier.cli.progress import console

keys = typer.Typer(
    name="keys", help="Make, list and revoke keys for 'dpoutlier serve'.", no_args_is_help=True, rich_markup_mode=None
)

File = Annotated[Path, typer.Argument(metavar="KEYS", help="File of keys. It holds hashes, never the keys themselves.")]


@keys.command(cls=Command)
def create(
    file: File,
    models: Annotated[
        str, typer.Option(help="Ids of models that the key is for, separated by commas, or '*' for all.")
    ] = "",
    label: Annotated[str, typer.Option(help="Whose key it is.")] = "",
    days: Annotated[int, typer.Option(help="Days until it expires.")] = 90,
    metrics: Annotated[bool, typer.Option("--metrics", help="Also permit reading metrics.")] = False,
) -> None:
    """Make a key and print it. It is shown only once and is not stored.

    Example: dpoutlier keys create keys.json --models heart --label "clinic A"
    """
    from dpoutlier.server.keys import create_key  # noqa: PLC0415 - --help must not wait for it

    wanted = [name.strip() for name in models.split(",") if name.strip()]
    typer.echo(create_key(file, wanted, label=label, days=days, metrics=metrics))


@keys.command(name="list", cls=Command)
def show(file: File) -> None:
    """List keys: ids, labels, and what they are for.

    Example: dpoutlier keys list keys.json
    """
    import time  # noqa: PLC0415

    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    from dpoutlier.server.keys import day, read_keys  # noqa: PLC0415

    table = Table()
    for name in ("id", "label", "models", "metrics", "created", "expires", "state"):
        table.add_column(name, overflow="fold")
    for key in read_keys(file):
        cells = [key.id, key.label, ", ".join(key.models), "yes" if key.metrics else "", day(key.created)]
        table.add_row(*map(Text, [*cells, day(key.expires), key.state(time.time())]))
    console().print(table)


@keys.command(cls=Command)
def revoke(file: File, name: Annotated[str, typer.Argument(metavar="ID", help="The key's id.")]) -> None:
    """Revoke a key. Servers refuse it within two seconds.

    Example: dpoutlier keys revoke keys.json abcdefghij
    """
    from dpoutlier.server.keys import revoke_key  # noqa: PLC0415

    revoke_key(file, name)
    typer.echo(f"Revoked {name}")
