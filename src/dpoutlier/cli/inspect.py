"""``dpoutlier inspect``: show what a model file promises and how it scores."""

import math
from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.progress import say


def inspect(
    model: Annotated[Path, typer.Argument(help="Model file, .dpo or .secret.dpo.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show what a model promises and how it scores.

    Example: dpoutlier inspect model.dpo
    """
    from dpoutlier.detectors.load import read_model  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.model.file import has_secret_name  # noqa: PLC0415

    found = read_model(model, secret=has_secret_name(model))
    statement = found.privacy_statement()
    endless = found.threshold is not None and math.isinf(found.threshold)  # JSON has no infinity
    scoring = {**found.scorer.to_json(), "threshold": str(found.threshold) if endless else found.threshold}
    if as_json:
        import json  # noqa: PLC0415

        content = {"statement": statement.to_dict(), "partition": found.partition.to_json(), "scoring": scoring}
        typer.echo(json.dumps(content, indent=2))
        return
    say(str(statement))
    say("\nScoring")
    for name, value in {**found.partition.to_json(), **scoring}.items():
        say(f"  {name:<24}{value}")
