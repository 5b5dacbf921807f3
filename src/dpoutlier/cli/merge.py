"""``dpoutlier merge``: add up releases."""

from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.progress import say


def merge(
    models: Annotated[
        list[Path], typer.Argument(help="Publishable model files with the same features and the same cells.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file to write; .dpo is added.")],
    people: Annotated[
        str | None,
        typer.Option(
            help="Required. 'disjoint': no person has rows in more than one release; epsilon is the largest of all. "
            "'overlapping': a person may have rows in several; epsilons add up.",
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model file.")] = False,
) -> None:
    """Add up models that several custodians published, free of privacy cost.

    Example: dpoutlier merge a.dpo b.dpo --people disjoint -o all
    """
    from dpoutlier.detectors.merge import merge as merged  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.model.file import check_target  # noqa: PLC0415

    check_target(output, overwrite=force)
    found = merged(models, people=people or "")
    path = found.save(output, overwrite=force)
    say(str(found.privacy_statement()))
    say(f"\nWrote {path}")
