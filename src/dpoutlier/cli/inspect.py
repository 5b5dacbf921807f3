"""``dpoutlier inspect``: show what a model file promises and how it scores."""

import math
from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.progress import say
from dpoutlier.cli.threshold import as_data, warn_of


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
    statement, false_alarms = found.privacy_statement(), found.false_alarms()
    endless = found.threshold is not None and math.isinf(found.threshold)  # JSON has no infinity
    scoring = {**found.scorer.to_json(), "threshold": str(found.threshold) if endless else found.threshold}
    if as_json:
        import json  # noqa: PLC0415

        scoring["false_alarms"] = as_data(false_alarms)
        content = {"statement": statement.to_dict(), "partition": found.partition.to_json(), "scoring": scoring}
        typer.echo(json.dumps(content, indent=2))
        return
    warn_of(false_alarms)
    say(str(statement))
    say("\nScoring")
    if false_alarms is not None:
        scoring["false alarms"] = str(false_alarms)
    for name, value in {**found.partition.to_json(), **scoring}.items():
        say(f"  {name:<24}{value}")
