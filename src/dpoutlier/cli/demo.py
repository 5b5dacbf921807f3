"""``dpoutlier demo``: the whole idea in one minute."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpoutlier.cli.progress import console, say, working

if TYPE_CHECKING:
    from rich.table import Table

    from dpoutlier.cli.demo_run import DemoResult


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the picture and the model.")] = Path("demo"),
    epsilon: Annotated[str, typer.Option(help="Total privacy loss of the fit.")] = "1",
) -> None:
    """See the whole idea in one minute.

    Fits a private model on breast cancer data, scores held-out points, compares with the exact twin and the data-free control,
    and draws what happened. Writes demo.png and wdbc.dpo, replacing older ones.

    Example: dpoutlier demo --out demo
    """
    from dpoutlier._validate import parameter_error  # noqa: PLC0415
    from dpoutlier.cli.demo_run import run_demo  # noqa: PLC0415
    from dpoutlier.privacy.guarantee import as_epsilon  # noqa: PLC0415 - --help must not wait for it

    if as_epsilon(epsilon) is None:
        raise parameter_error("--epsilon", "finite", epsilon)
    with working("fitting, scoring and drawing (the first time also compiling)"):
        result = run_demo(out, epsilon)
    console().print(_table(result))
    picture = result.picture or "left out; it needs pip install 'dpoutlier[plots]'"
    say(f"\nPicture: {picture}\nModel:   {result.model} (publishable: it holds noisy counts only)")


def _table(result: "DemoResult") -> "Table":
    from rich.table import Table  # noqa: PLC0415

    table = Table(
        title=f"Held-out points: {result.n_inliers} benign, {result.n_outliers} malignant", title_justify="left"
    )
    for name in ("detector", "AUROC", "privacy"):
        table.add_column(name, justify="right" if name == "AUROC" else "left")
    for row in result.rows:
        spread = f" ± {row.spread:.3f}" if row.spread is not None else "        "
        table.add_row(row.name, f"{row.auroc:.3f}{spread}", row.privacy)
    return table
