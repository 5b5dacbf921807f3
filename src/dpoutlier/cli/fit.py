"""``dpoutlier fit``: reference rows in, a model file out."""

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from dpoutlier.cli.errors import errors_for_people

__all__ = ["fit"]


class Neighbours(StrEnum):
    ADD_OR_REMOVE_ONE = "add-or-remove-one"
    REPLACE_ONE = "replace-one"


class Holder(StrEnum):
    AUTO = "auto"
    DENSE = "dense"
    KEYED = "keyed"


class Distance(StrEnum):
    CELL = "cell"
    POINT = "point"


class Exhausted(StrEnum):
    OUTLYING = "outlying"
    AS_PRINTED = "as-printed"


def _n_hint(text: str) -> int | str:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def fit(
    reference: Annotated[Path, typer.Argument(help="Reference rows, CSV or Parquet. They stay private.")],
    features: Annotated[Path, typer.Option(help="Features file (TOML or JSON): the public range of each feature.")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of this fit, such as 0.5 or 1/3. Your choice.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Model file; .dpo or .secret.dpo is appended.")],
    n_hint: Annotated[
        str,
        typer.Option(
            help="Public guess of the number of rows, never the true one; 'buy' costs 5 % of epsilon. For --bins auto."
        ),
    ] = "buy",
    bins: Annotated[str, typer.Option(help="Bins per feature: a number, one for each as 5,5,2, or 'auto'.")] = "auto",
    k: Annotated[int, typer.Option(help="Noisy rows to gather.")] = 10,
    weighted: Annotated[bool, typer.Option("--weighted", help="Weighted k-NN.")] = False,
    distance: Annotated[
        Distance, typer.Option(help="What scores: distance between cells, or from the point.")
    ] = Distance.CELL,
    max_depth: Annotated[int, typer.Option(help="Most grid steps from home; -1 for no limit.")] = 4,
    max_cells: Annotated[int, typer.Option(help="Most cells to visit for one point.")] = 100_000,
    exhausted: Annotated[
        Exhausted, typer.Option(help="Score of a walk that did not gather k rows.")
    ] = Exhausted.OUTLYING,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Which data sets must be hard to tell apart.")
    ] = Neighbours.ADD_OR_REMOVE_ONE,
    rows_per_person: Annotated[int, typer.Option(help="Most rows that one person has.")] = 1,
    target_fpr: Annotated[float | None, typer.Option(help="Buy a threshold at this false-positive rate.")] = None,
    threshold_share: Annotated[float, typer.Option(help="Share of epsilon that the threshold costs.")] = 0.05,
    holder: Annotated[
        Holder, typer.Option(help="dense can be published; keyed takes any grid and is secret.")
    ] = Holder.AUTO,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model file.")] = False,
) -> None:
    """Fit a private detector and write it to a file.

    Example: dpoutlier fit reference.csv --features features.toml --epsilon 0.5 -o model
    """
    with errors_for_people():
        from dpoutlier._validate import bad  # noqa: PLC0415
        from dpoutlier.cli.files import read_reference  # noqa: PLC0415 - --help must not wait for it
        from dpoutlier.cli.progress import console, say_if_compiling, working  # noqa: PLC0415
        from dpoutlier.detectors.grid import DPGridKNN  # noqa: PLC0415
        from dpoutlier.domain import Bounds  # noqa: PLC0415
        from dpoutlier.guarantee import as_epsilon  # noqa: PLC0415
        from dpoutlier.modelfile import check_target  # noqa: PLC0415

        bounds = Bounds.from_file(features)
        assert bounds.names is not None
        if as_epsilon(epsilon) is None:
            raise bad("--epsilon", "finite", epsilon, "The command line fits private models only.")
        detector = DPGridKNN(
            epsilon,
            bounds=bounds,
            neighbours=neighbours.value,
            rows_per_person=rows_per_person,
            n_hint=_n_hint(n_hint),
            k=k,
            bins=bins if bins == "auto" else _bins(bins),
            weighted=weighted,
            distance=distance.value,
            max_depth=None if max_depth == -1 else max_depth,
            max_cells=max_cells,
            exhausted=exhausted.value,
            holder=holder.value,
            target_fpr=target_fpr,
            threshold_share=threshold_share,
        )
        check_target(output, overwrite=force)
        say_if_compiling()
        with working("reading and counting"):
            detector.fit(read_reference(reference, bounds.names))
        path = detector.save(output, overwrite=force)
        console().print(str(detector.privacy_statement()), soft_wrap=True, markup=False)
        console().print(f"\nWrote {path}", soft_wrap=True, markup=False)


def _bins(text: str) -> int | list[int]:
    from dpoutlier._validate import bad  # noqa: PLC0415

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        raise bad("--bins", "'auto', a number, or numbers with commas between", text) from None
    return numbers[0] if len(numbers) == 1 else numbers
