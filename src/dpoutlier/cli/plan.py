"""``dpoutlier plan``: how well a detector would work, estimated before any data is read."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.fit import Detector, Neighbours
from dpoutlier.cli.progress import console, say, say_if_compiling, working
from dpoutlier.cli.threshold import doubt

if TYPE_CHECKING:
    from dpoutlier.detectors.simulate import Advice, Outlook
    from dpoutlier.scoring.false_alarms import FalseAlarms


NUMBERS = {"noise", "rows", "AUROC", "control"}


def plan(
    n_rows: Annotated[int, typer.Option(min=1, help="About how many reference rows there will be: a public guess.")],
    features: Annotated[Path, typer.Option(help="Features file (TOML or JSON): the public range of each feature.")],
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of the fit, such as 0.5 or 1/3.")],
    detector: Annotated[Detector, typer.Option(help="What would be fitted.")] = Detector.AUTO,
    neighbours: Annotated[
        Neighbours, typer.Option(help="Which data sets must be hard to tell apart.")
    ] = "add-or-remove-one",
    rows_per_person: Annotated[int, typer.Option(help="Largest number of rows of one person.")] = 1,
    target_fpr: Annotated[
        float | None,
        typer.Option(
            help="Also say what a threshold at this false-positive rate would do, which takes a share of epsilon."
        ),
    ] = None,
) -> None:
    """Estimate how well a detector would work, before any data is read.

    Fits made-up rows of the same number and width. Shows what would be fitted, how much noise the counts have, how well outliers
    would be found, and which epsilon is needed. No data is read.

    Example: dpoutlier plan --n-rows 5000 --features features.toml --epsilon 0.5
    """
    from dpoutlier._validate import checked_share, parameter_error  # noqa: PLC0415
    from dpoutlier.detectors.simulate import advise  # noqa: PLC0415 - --help must not wait for it
    from dpoutlier.features.bounds import Bounds  # noqa: PLC0415
    from dpoutlier.privacy.guarantee import as_epsilon  # noqa: PLC0415

    bounds = Bounds.from_file(features)
    exact = as_epsilon(epsilon)
    if exact is None:
        raise parameter_error("--epsilon", "finite", epsilon, "Without noise there is nothing to plan.")
    if target_fpr is not None:
        checked_share(target_fpr=target_fpr)
    assert bounds.names is not None
    say_if_compiling()
    with working("simulating"):
        advice = advise(
            n_rows,
            len(bounds.names),
            float(exact),
            name=detector.value,
            bounds=bounds,
            neighbours=neighbours,
            rows_per_person=rows_per_person,
            target_fpr=target_fpr,
        )
    found = advice.false_alarms
    if found is not None and not found.trusted:
        say(_of_threshold(advice, found, target_fpr), "yellow")
    _print(advice)
    if found is not None and found.trusted:
        say(_of_threshold(advice, found, target_fpr))


def _print(advice: "Advice") -> None:
    from rich.table import Table  # noqa: PLC0415

    title = (
        f"{advice.n_rows:,} rows, {advice.n_features} features, epsilon {advice.epsilon:g}: expected on made-up data"
    )
    table = Table(title=title, title_justify="left")
    for name in ("detector", "fitted as", "noise", "rows", "AUROC", "control", "expect"):
        table.add_column(name, justify="right" if name in NUMBERS else "left", no_wrap=name != "fitted as")
    for name, found in advice.outlooks.items():
        mark = "[bold]" if name == advice.chosen else ""
        if found is None:
            table.add_row(f"{mark}{name}", "too many cells", *[""] * 4, "impossible")
            continue
        table.add_row(
            f"{mark}{name}",
            found.partition,
            _short(found.noise),
            _short(found.expected),
            f"{found.auroc:.3f}",
            f"{found.control:.3f}",
            _verdict(advice, found),
        )
    table.add_row("k-NN", "not private", "", "", f"{advice.plain:.3f}", "", "")
    console().print(table)
    say(
        "noise: scale of the noise of a count, in rows; rows: expected in the cell of a normal row; control: the same detector "
        "fitted on no rows.\n",
        style="dim",
    )
    for line in _sentences(advice):
        say(line)


def _verdict(advice: "Advice", found: "Outlook") -> str:
    from dpoutlier.detectors.simulate import NOISE_ONLY, USEFUL  # noqa: PLC0415

    if not found.judged:
        return "unknown"
    part = advice.part_of_the_way(found)
    if part < NOISE_ONLY:
        return "all noise"
    if found.expected < found.noise:
        return "mostly noise"
    return "useful" if part >= USEFUL else "weak" if part < (NOISE_ONLY + USEFUL) / 2 else "fair"


def _short(rows: float) -> str:
    """About three digits, for any number of rows."""
    for unit, name in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if rows >= unit:
            return f"{rows / unit:.3g}{name}"
    return f"{rows:.2g}" if rows < 10 else f"{rows:.0f}"


def _many(n: int) -> str:
    return f"{n:,}" if n < 10**9 else f"{float(n):.1e}"


def _sentences(advice: "Advice") -> list[str]:
    lines = []
    found = advice.outlooks[advice.chosen]
    if found is None:
        lines.append(f"A {advice.chosen} cannot be fitted to {advice.n_features} features: choose --detector forest.")
        return lines
    fate = "which may be published" if found.publishable else "too many to publish: the model would be secret"
    lines.append(
        f"`dpoutlier fit` would use {found.detector}, {found.partition}: {_many(found.cells)} noisy counts, {fate}."
    )
    if _verdict(advice, found) == "all noise":
        lines.append(f"This {advice.chosen} would be all noise: it would find outliers no better than chance.")
    if not found.judged:
        lines.append(
            "The simulation uses fewer rows than yours, and these cannot represent your rows on such a fine partition."
        )
    elif advice.useful_epsilon is None:
        lines.append("It is not useful at any epsilon that was tried. More rows or fewer features would help.")
    elif advice.useful_epsilon <= advice.epsilon:
        lines.append(f"It is useful at this epsilon, and still at epsilon {advice.useful_epsilon:.2g}.")
    else:
        lines.append(f"It becomes useful at epsilon {advice.useful_epsilon:.2g}.")
    lines += [
        f"Ranges {width} times too wide: AUROC {as_fitted:.3f}, and {declared:.3f} with --tight-ranges."
        for width, (as_fitted, declared) in advice.too_wide.items()
    ]
    lines.append(
        "'Useful' means at least 90 % of the way from chance to plain k-NN. The made-up data have normal rows in 3 clusters, and "
        "outliers that take random values in a quarter of their features. Your data will differ."
    )
    return lines


def _of_threshold(advice: "Advice", found: "FalseAlarms", target_fpr: float | None) -> str:
    """What a threshold would do. On fewer rows than meant, the chance in which rows are there makes the interval wider."""
    from dpoutlier.scoring.false_alarms import percent  # noqa: PLC0415

    fewer = advice.n_simulated < advice.n_rows
    if not found.trusted:
        where = (
            f" on the {advice.n_simulated:,} rows that were simulated; with all of yours it can be surer"
            if fewer
            else ""
        )
        return f"The threshold could not be trusted{where}: with --target-fpr {target_fpr:g} {doubt(found)}."
    lower, upper, level = (percent(share) for share in (found.lower, found.upper, found.level))
    most = f" at most ({level} confidence; fewer rows than yours were simulated, which makes it wider)"
    return (
        f"With --target-fpr {target_fpr:g} about {percent(found.expected)} of normal points would be flagged; expect between "
        f"{lower} and {upper}" + (f"{most}." if fewer else f" ({level} confidence).")
    )
