"""``dpoutlier fit``: reference rows in, a model file out."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dpoutlier.cli.progress import reading, say, say_if_compiling
from dpoutlier.detectors.registry import DETECTOR_NAMES
from dpoutlier.exceptions import DpoutlierError, InvalidParameterError

if TYPE_CHECKING:
    from dpoutlier.ledger.ledger import Ledger
    from dpoutlier.privacy.receipt import Receipt


Neighbours = Literal["add-or-remove-one", "replace-one"]


class Detector(StrEnum):
    AUTO = "auto"
    vars().update({name.upper(): name for name in DETECTOR_NAMES})


def _n_rows_hint(text: str) -> int | str:
    """As an argument; "buy" is the old name of "estimate"."""
    if text == "buy":
        return "estimate"
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text) else text


def fit(
    reference: Annotated[
        list[Path],
        typer.Argument(
            help="Reference rows, CSV or Parquet: files, a pattern in quotation marks, or a folder of .parquet files. They stay "
            "private."
        ),
    ],
    features: Annotated[Path, typer.Option(help="Features file (TOML or JSON): the public range of each feature.")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of this fit, such as 0.5 or 1/3. You choose it.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Model file to write; .dpo or .secret.dpo is appended.")
    ],
    detector: Annotated[Detector, typer.Option(help="What to fit; auto is the forest.")] = Detector.AUTO,
    n_rows_hint: Annotated[
        str,
        typer.Option(
            help="Public guess of the number of rows, never the true one; 'estimate' spends 5 % of epsilon if it is needed."
        ),
    ] = "estimate",
    tight_ranges: Annotated[
        bool | None,
        typer.Option(
            "--tight-ranges/--loose-ranges",
            help="Tight: take the declared ranges as they are. Loose: they may be far too wide, so spend some of epsilon (usually "
            "3 to 30 %) to look where in them the rows lie. Default: loose, unless --bins, or --n-trees and --depth, are numbers.",
        ),
    ] = None,
    target_fpr: Annotated[
        float | None, typer.Option(help="Spend a share of epsilon on a threshold at this false-positive rate.")
    ] = None,
    threshold_share: Annotated[
        str, typer.Option(help="Share of epsilon for the threshold; 'auto' takes 0.05 to 0.25 by a public rule.")
    ] = "auto",
    outlier_share: Annotated[
        float, typer.Option(help="Declared share of outliers among the reference rows, for the threshold.")
    ] = 0.0,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Which data sets must be hard to tell apart.")
    ] = "add-or-remove-one",
    rows_per_person: Annotated[int, typer.Option(help="Largest number of rows of one person.")] = 1,
    person: Annotated[
        str | None,
        typer.Option(help="Column that identifies people; at most --rows-per-person rows of each are used."),
    ] = None,
    n_trees: Annotated[str | None, typer.Option(help="Forest: number of trees, or 'auto'.")] = None,
    depth: Annotated[str | None, typer.Option(help="Forest: largest number of levels of a tree, or 'auto'.")] = None,
    subspace: Annotated[
        str | None,
        typer.Option(help="Forest: number of features of a tree, or several in turn, such as 2,4,8."),
    ] = None,
    tree_seed: Annotated[int | None, typer.Option(help="Forest: public number from which the trees are grown.")] = None,
    bins: Annotated[
        str | None,
        typer.Option(help="Grid, marginals: bins of every feature, or of each, such as 5,5,2; or 'auto' (grid)."),
    ] = None,
    k: Annotated[
        int | None, typer.Option(help="Grid: number of noisy rows to reach (the k of k-NN); 10 by default.")
    ] = None,
    weighted: Annotated[bool, typer.Option("--weighted", help="Grid: weighted k-NN.")] = False,
    distance: Annotated[
        Literal["cell", "point"] | None, typer.Option(help="Grid: measure distances between cells, or from the point.")
    ] = None,
    max_depth: Annotated[
        int | None, typer.Option(help="Grid: largest number of steps from the point's own cell; -1 for no limit.")
    ] = None,
    max_cells: Annotated[
        int | None, typer.Option(help="Grid: largest number of cells to visit for one point; no limit with sparse.")
    ] = None,
    exhausted: Annotated[
        Literal["outlying", "as-printed"] | None,
        typer.Option(help="Grid: how to score a point when fewer than k rows are within reach."),
    ] = None,
    counts: Annotated[
        Literal["auto", "dense", "keyed", "sparse"] | None,
        typer.Option(
            help="Grid: dense counts can be published; keyed counts fit any grid and are secret; sparse counts fit any grid, drop "
            "small counts, and can be published."
        ),
    ] = None,
    sparse_size: Annotated[
        int | None,
        typer.Option(help="Sparse counts: expected number of empty cells among those kept; 10000 by default."),
    ] = None,
    ledger: Annotated[
        Path | None, typer.Option(help="Ledger to which epsilon is charged before any row is read (dpoutlier ledger).")
    ] = None,
    dataset: Annotated[str | None, typer.Option(help="Ledger: name of the data set whose budget pays.")] = None,
    anchor: Annotated[
        Path | None, typer.Option(help="Ledger: where its anchor is now, if it was moved. The move is recorded.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing model file.")] = False,
) -> None:
    """Fit a private detector and write it to a file.

    Example: dpoutlier fit reference.csv --features features.toml --epsilon 0.5 -o model

    With a budget: dpoutlier fit reference.csv --features features.toml --epsilon 0.5 -o model --ledger budget.ledger --dataset
    patients

    Files larger than memory: dpoutlier fit "rows/*.parquet" --features features.toml --epsilon 0.5 -o model
    """
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.detectors.registry import detector as chosen_detector  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.features.bounds import Bounds  # noqa: PLC0415
    from dpoutlier.ledger.deferred import DeferredLedger  # noqa: PLC0415
    from dpoutlier.model.file import check_target, try_target  # noqa: PLC0415
    from dpoutlier.privacy.guarantee import as_epsilon  # noqa: PLC0415
    from dpoutlier.tables.files import file_table  # noqa: PLC0415

    bounds = Bounds.from_file(features)
    assert bounds.names is not None
    if person in bounds.names:
        raise parameter_error("--person", "a column that is not a feature", person)
    if as_epsilon(epsilon) is None:
        raise parameter_error("--epsilon", "finite", epsilon, "The command line fits private models only.")
    own = {
        "n_trees": None if n_trees is None else _number_or_auto("--n-trees", n_trees),
        "depth": None if depth is None else _number_or_auto("--depth", depth),
        "subspace": None if subspace is None else _numbers("--subspace", subspace),
        "tree_seed": tree_seed,
        "bins": bins if bins in {None, "auto"} else _numbers("--bins", str(bins)),
        "k": k,
        "weighted": True if weighted else None,
        "distance": distance,
        "max_depth": max_depth,
        "max_cells": max_cells,
        "exhausted": exhausted,
        "counts": counts,
        "sparse_size": sparse_size,
    }
    if ledger is None and anchor is not None:
        raise parameter_error("--anchor", "left out, or given with --ledger", str(anchor))
    book = None if ledger is None else DeferredLedger(ledger, anchor=anchor)
    unfitted = chosen_detector(
        detector.value,
        epsilon=epsilon,
        features=bounds,
        n_rows_hint=_n_rows_hint(n_rows_hint),
        neighbours=neighbours,
        rows_per_person=rows_per_person,
        person=person,
        tight_ranges="auto" if tight_ranges is None else tight_ranges,
        target_fpr=target_fpr,
        threshold_share=_share_or_auto(threshold_share),
        outlier_share=outlier_share,
        ledger=book,
        dataset=dataset,
    )
    _set_own(
        unfitted, {name: value for name, value in own.items() if value is not None}, default=detector is Detector.AUTO
    )
    check_target(output, overwrite=force)
    say_if_compiling()
    with _report_failure(book, output):
        try_target(output)
        table = file_table(reference, bounds.names, person)
        with reading("reading and counting") as table.watch:
            unfitted.fit(table)
        path = unfitted.save(output, overwrite=force)
        if book is not None:
            book.settle()
        say(str(unfitted.privacy_statement()))
        if book is not None:
            say(f"\n{book.outcome(book.receipt)}")
        say(f"\nWrote {path}")


@contextmanager
def _report_failure(book: "Ledger | None", output: Path) -> Iterator[None]:
    """If a fit is stopped or fails, print what the ledger and the disk show by then. That is public."""
    try:
        yield
    except BaseException:
        if book is not None:
            outcome = book.outcome(book.tried)
            if book.tried is not None:
                outcome += f" {_model_of(book.tried, output)}"
            with suppress(OSError):  # the first error is the one to report
                say(outcome, stderr=True)
        raise


def _model_of(receipt: "Receipt", output: Path) -> str:
    """Whether the model of a charge is in its file. An older model may have the same name."""
    from dpoutlier.detectors.load import read_model  # noqa: PLC0415
    from dpoutlier.model.file import targets  # noqa: PLC0415

    for target in targets(output):
        with suppress(DpoutlierError):
            if read_model(target, secret=True).receipt == receipt:
                return f"Its model is in {target}."
    return "No model was written."


def _set_own(detector: Any, own: dict[str, Any], *, default: bool) -> None:
    """Set the arguments of one detector only. Refuse what this one does not take."""
    foreign = [name for name in own if name not in detector.get_params()]
    if foreign:
        why = "the default detector" if default else "the detector that you chose"
        raise InvalidParameterError(
            f"--{foreign[0].replace('_', '-')} is not an option of {type(detector).__name__}, {why}.",
            remedy="Leave it out, or choose the detector with --detector "
            f"{', '.join(DETECTOR_NAMES[:-1])} or {DETECTOR_NAMES[-1]}.",
        )
    if own.get("max_depth") == -1:
        own["max_depth"] = None
    detector.set_params(**own)


def _share_or_auto(text: str) -> float | str:
    from dpoutlier._validate import parameter_error  # noqa: PLC0415

    if text == "auto":
        return text
    if not re.fullmatch(r"[0-9]*\.?[0-9]+", text):
        raise parameter_error("--threshold-share", "'auto' or a number between 0 and 1", text)
    return float(text)


def _number_or_auto(option: str, text: str) -> int | str:
    from dpoutlier._validate import parameter_error  # noqa: PLC0415

    if text == "auto":
        return text
    if not re.fullmatch(r"-?[0-9]{1,18}", text):
        raise parameter_error(option, "'auto' or a whole number", text)
    return int(text)


def _numbers(option: str, text: str) -> int | list[int]:
    from dpoutlier._validate import parameter_error  # noqa: PLC0415

    try:
        numbers = [int(part) for part in text.split(",")]
    except ValueError:
        also = "'auto', " if option == "--bins" else ""
        raise parameter_error(option, f"{also}a number, or numbers with commas between", text) from None
    return numbers[0] if len(numbers) == 1 else numbers
