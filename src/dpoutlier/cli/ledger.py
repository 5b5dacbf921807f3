"""``dpoutlier ledger``: the privacy budget of data sets."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from dpoutlier.cli.errors import Command
from dpoutlier.cli.fit import Neighbours
from dpoutlier.cli.progress import console, say
from dpoutlier.exceptions import InvalidParameterError

if TYPE_CHECKING:
    from dpoutlier.ledger.budgets import Balance
    from dpoutlier.ledger.ledger import Ledger


ledger = typer.Typer(
    name="ledger",
    help="The privacy budget of data sets: charged before any row is read, never edited.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

File = Annotated[Path, typer.Argument(help="The ledger, a file on a disk of this machine.")]
Anchor = Annotated[
    Path | None,
    typer.Option(help="Where the anchor is now, if it was moved; the next entry that is written records it."),
]


@ledger.command(cls=Command)
def create(
    path: File,
    dataset: Annotated[str, typer.Option(help="Name of the data set. Rows of the same people go under the same name.")],
    epsilon: Annotated[str | None, typer.Option(help="Limit on the total epsilon of all fits, such as 3.")] = None,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Which data sets must be hard to tell apart.")
    ] = "add-or-remove-one",
    unit: Annotated[Literal["row", "person"], typer.Option(help="Whom epsilon protects.")] = "row",
    rows_per_person: Annotated[
        int | None,
        typer.Option(help="Unit person: largest number of rows of one person. Without it, every fit needs --person."),
    ] = None,
    person: Annotated[
        str | None,
        typer.Option(help="Unit person: column that identifies people. Fits that use another column are refused."),
    ] = None,
    part_of: Annotated[
        str | None,
        typer.Option(
            help="Instead of --epsilon: the data set that this is a part of. Declares that nobody has rows in two parts; then only "
            "the part that spent most counts."
        ),
    ] = None,
    anchor: Annotated[
        Path | None,
        typer.Option(
            help="New ledger: a second file to make on another disk; it shows later if the ledger is an old copy. "
            "Existing ledger: where its anchor is now."
        ),
    ] = None,
) -> None:
    """Open a budget for a data set; the first one makes the file. A budget never changes.

    Example: dpoutlier ledger create budget.ledger --dataset patients --epsilon 3 --anchor /mnt/other-disk/budget.anchor
    """
    from dpoutlier._validate import parameter_error  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.ledger.ledger import Ledger, check_budget  # noqa: PLC0415

    if epsilon is None and part_of is None:
        raise InvalidParameterError("give --epsilon, the most that may ever be spent, or --part-of for a part.")
    if epsilon is not None and part_of is not None:
        raise InvalidParameterError("--epsilon and --part-of exclude each other: a part spends from the whole.")
    given: dict[str, Any] = {
        "epsilon": epsilon,
        "neighbours": neighbours,
        "unit": unit,
        "rows_per_person": rows_per_person,
        "person": person,
        "part_of": part_of,
    }
    check_budget(dataset, **given)
    new = not path.exists()
    if new and part_of is not None:
        raise parameter_error("--part-of", f"left out, since {path} does not exist yet", part_of)
    opened = Ledger.create(path, anchor=anchor) if new else Ledger(path, anchor=anchor)
    opened.open_budget(dataset, **given)
    if new:
        _advise_on_anchor(path, anchor)
    _print_balances(opened)


@ledger.command(cls=Command)
def show(
    path: File,
    plan: Annotated[
        str | None,
        typer.Option(help="Also show how many fits of this epsilon are left, in the unit of each budget."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    anchor: Anchor = None,
) -> None:
    """Show what each data set has spent and has left.

    Example: dpoutlier ledger show budget.ledger --plan 0.25
    """
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.cli.anchor_changes import anchors_as_json, print_anchors  # noqa: PLC0415
    from dpoutlier.privacy.guarantee import as_epsilon  # noqa: PLC0415

    each = None if plan is None else as_epsilon(plan)
    if plan is not None and each is None:
        raise parameter_error("--plan", "finite", plan)
    opened = _open(path, anchor)
    if as_json:
        import json  # noqa: PLC0415

        balances = [_as_json(balance, each) for balance in opened.balances()]
        content = {"budgets": balances, "charges": _charges(opened), "anchor_changes": anchors_as_json(opened)}
        typer.echo(json.dumps(content, indent=2))
        return
    _print_balances(opened, each)
    _print_charges(opened)
    print_anchors(opened)


@ledger.command(cls=Command)
def charge(
    path: File,
    dataset: Annotated[str, typer.Option(help="Name of the data set.")],
    epsilon: Annotated[str, typer.Option(help="What was spent, in the relation and unit of the budget.")],
    note: Annotated[str, typer.Option(help="What was released, and how.")],
    anchor: Anchor = None,
) -> None:
    """Charge what was released without this ledger: by another program, or before it existed.

    Example: dpoutlier ledger charge budget.ledger --dataset patients --epsilon 0.5 --note "table 3 of the report of 2025"
    """
    opened = _open(path, anchor)
    opened.charge(dataset, epsilon, note)
    _print_balances(opened)


@ledger.command(cls=Command)
def verify(
    path: File,
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            help="Model files to check. The ledger entry of each model must name exactly this release. For a merged model, "
            "the entries of its parts are checked."
        ),
    ] = None,
    head: Annotated[str | None, typer.Option(help="A head that was noted before: it must still be there.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    anchor: Anchor = None,
) -> None:
    """Check that nothing was edited, taken out or put back, and print the head. Note it in another place.

    Exit code 2 if anything is wrong.

    Example: dpoutlier ledger verify budget.ledger january.dpo february.dpo
    """
    from dpoutlier.cli.anchor_changes import anchors_as_json, print_anchors  # noqa: PLC0415
    from dpoutlier.cli.paid import check_models  # noqa: PLC0415

    opened = _open(path, anchor)
    number, last = opened.verify(head=head)
    held, remarks = check_models(opened, models or [])
    known_by = [f"{held} model file{'' if held == 1 else 's'}"] if held else []
    known_by += ["the head given"] if head is not None else []
    known_by += ["the anchor"] if opened.has_anchor() else []
    if as_json:
        import json  # noqa: PLC0415

        content = {"entries": number, "head": last, "known_by": known_by, "remarks": remarks}
        typer.echo(json.dumps({**content, "anchor_changes": anchors_as_json(opened)}, indent=2))
        return
    say(f"{number} entries; the chain is complete.")
    print_anchors(opened)
    for remark in remarks:
        say(remark)
    if known_by:
        say(f"Agrees with {', '.join(known_by)}.")
    else:
        say(
            "The file alone cannot show whether it is an old copy. Give models, --head or --anchor.",
            style="yellow",
        )
    say(f"Head: {last}")


@ledger.command(cls=Command)
def anchor(
    path: File,
    new: Annotated[Path, typer.Argument(help="The new anchor, a file that does not exist yet.")],
    lost: Annotated[
        bool,
        typer.Option(
            "--lost", help="The old anchor is gone. First verify the ledger with all models and heads that you have."
        ),
    ] = False,
    old: Annotated[Path | None, typer.Option("--anchor", help="Where the old anchor is now, if it was moved.")] = None,
) -> None:
    """Replace the anchor by another file. The ledger records the change.

    Example: dpoutlier ledger anchor budget.ledger /mnt/new-disk/budget.anchor
    """
    opened = _open(path, old)
    opened.move_anchor(new, lost=lost)
    say(f"{path} has its anchor in {new} from now on.")
    _advise_on_anchor(path, new)


@ledger.command(cls=Command)
def export(
    path: File,
    output: Annotated[Path, typer.Option("--output", "-o", help="All entries, .csv or .json.")],
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    anchor: Anchor = None,
) -> None:
    """Write all entries to a file, for an auditor. Whoever has it can check the hashes by themselves.

    Example: dpoutlier ledger export budget.ledger -o budget.csv
    """
    from dpoutlier._atomic import write_aside  # noqa: PLC0415
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.ledger.export import as_csv, as_json  # noqa: PLC0415

    ways = {".csv": as_csv, ".json": as_json}
    if output.suffix.lower() not in ways:
        raise parameter_error("--output", "a .csv or .json file", str(output))
    content = ways[output.suffix.lower()](_open(path, anchor).entries())
    write_aside(output, lambda stream: stream.write(content), overwrite=force)
    say(f"Wrote {output}")


def _open(path: Path, anchor: Path | None) -> "Ledger":
    from dpoutlier.ledger.ledger import Ledger  # noqa: PLC0415

    return Ledger(path, anchor=anchor)


def _as_json(balance: "Balance", each: Any) -> dict[str, Any]:
    from dpoutlier.ledger.budgets import number_text  # noqa: PLC0415

    budget = balance.budget
    return {
        "dataset": budget.dataset,
        "part_of": budget.part_of,
        "epsilon": number_text(balance.total),
        "spent": number_text(balance.spent),
        "left": number_text(balance.left, down=True),
        "neighbours": budget.neighbours.value,
        "protects": budget.protects,
        "fits": balance.fits,
        "unfinished": balance.unfinished,
        **({} if each is None else {"fits_left": _fits_left(balance, each)}),
    }


def _fits_left(balance: "Balance", each: Any) -> int:
    return max(int(balance.left // each), 0)


def _charges(opened: "Ledger") -> list[dict[str, Any]]:
    from dpoutlier.ledger.budgets import number_text  # noqa: PLC0415

    return [
        {
            "entry": one.number,
            "time": one.time,
            "dataset": one.dataset,
            "epsilon": number_text(one.epsilon),
            "what": one.what,
            "release": one.release,
        }
        for one in opened.spendings()
    ]


def _advise_on_anchor(path: Path, anchor: Path | None) -> None:
    """Say so if an old copy of the ledger could be put back unnoticed."""
    if anchor is not None and anchor.resolve().parent != path.resolve().parent:
        return

    say(
        "This ledger has no anchor. If somebody puts an old copy back, only model files and heads that you noted elsewhere can "
        "show it (dpoutlier ledger verify)."
        if anchor is None
        else "The anchor is in the same folder as the ledger. Whoever restores an old copy of this folder restores both, and "
        "nobody can notice. Move the anchor to another disk (dpoutlier ledger anchor).",
        style="yellow",
        stderr=True,
    )


def _print_balances(opened: "Ledger", each: Any = None) -> None:
    from dpoutlier.ledger.budgets import number_text  # noqa: PLC0415

    numbers = ["epsilon", "spent", "left", "fits"]
    more = [] if each is None else [f"fits of {number_text(each)} left"]
    rows = []
    for balance in opened.balances():
        budget = balance.budget
        row = [
            budget.dataset if budget.part_of is None else f"  {budget.dataset}",
            number_text(balance.total) if budget.part_of is None else f"of {budget.part_of}",
            number_text(balance.spent),
            number_text(balance.left, down=True),
            f"{balance.fits}" + (f" ({balance.unfinished} unfinished)" if balance.unfinished else ""),
            budget.neighbours.value,
            budget.protects,
        ]
        rows.append(row if each is None else [*row, str(_fits_left(balance, each))])
    _print_table("Budgets", ["data set", *numbers, "relation", "protects", *more], [*numbers, *more], rows)


def _print_charges(opened: "Ledger") -> None:
    rows = [
        [
            str(one["entry"]),
            one["time"][:16].replace("T", " "),
            one["dataset"],
            one["epsilon"],
            one["what"],
            "unknown; counts as spent" if one["release"] is None else one["release"][:12],
        ]
        for one in _charges(opened)
    ]
    names = ["entry", "time", "data set", "epsilon", "what", "released"]
    if rows:
        _print_table("Charges", names, ["entry", "epsilon"], rows, wrap=False)


def _print_table(title: str, names: list[str], right: list[str], rows: list[list[str]], *, wrap: bool = True) -> None:
    """``right`` are columns of numbers, which may be folded if ``wrap``; the others may be always."""
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(title=title, title_justify="left")
    for name in names:
        number = name in right
        table.add_column(name, justify="right" if number else "left", overflow="fold", no_wrap=number and not wrap)
    for row in rows:
        table.add_row(*map(Text, row))
    console().print(table)
