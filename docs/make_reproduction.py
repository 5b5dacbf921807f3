"""Write docs/reproduction.md and its pictures from a finished run: every result on that page is looked up in the run's tables.

python -m experiments --out reproduction && python docs/make_reproduction.py reproduction
"""

import shutil
import sys
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from experiments.measure.study import FULL
from experiments.report.judging import ACCEPTABLE, NEARLY_ALL
from experiments.report.view import TOLERANCE
from experiments.report.wording import decimals, title_of

HERE = Path(__file__).parent
PICTURES = ("illustration", "figure1", "figure2", "readings", "ladder")


class Run:
    """The tables of a run, as the page asks for them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.tables = {name: pd.read_csv(folder / f"{name}.csv") for name in ("summary", "chosen", "ladder", "attack")}
        texts = {name: pd.read_csv(folder / f"{name}.csv", keep_default_na=False) for name in ("claims", "readings")}
        self.tables |= texts
        self.claims: list[dict[str, Any]] = texts["claims"].to_dict("records")

    def readings(self) -> list[dict[str, Any]]:
        """Each once, the base reading first."""
        return self.tables["readings"].drop_duplicates("reading").to_dict("records")

    def figure(self, claim: str, reading: str = "base") -> str:
        return str(self._finding(claim, reading)["figure"])

    def holds(self, claim: str, reading: str = "base") -> str:
        return "holds" if self._finding(claim, reading)["holds"] else "fails"

    def held(self, verdict: str) -> int:
        return sum(one["verdict"] == verdict for one in self.claims)

    def _finding(self, claim: str, reading: str) -> pd.Series:
        table = self.tables["readings"]
        return table[(table.claim == claim) & (table.reading == reading)].iloc[0]

    def k(self, dataset: str) -> int:
        return int(self._chosen(dataset)["k"])

    def b(self, dataset: str, variant: str) -> int:
        return int(self._chosen(dataset)[f"b_{variant}"])

    def _chosen(self, dataset: str) -> pd.Series:
        table = self.tables["chosen"]
        return table[table.dataset == title_of(dataset)].iloc[0]

    def mean(
        self,
        dataset: str,
        variant: str,
        algorithm: str,
        *,
        bins: int | None = None,
        epsilon: float | None = None,
        control: bool = False,
        metric: str = "auroc",
        k: int | None = None,
    ) -> str:
        """A mean over splits and seeds, at the chosen k."""
        table = self.tables["summary"]
        found = table[
            (table.dataset == dataset)
            & (table.variant == variant)
            & (table.algorithm == algorithm)
            & (table.control == control)
            & (table.k == (self.k(dataset) if k is None else k))
        ]
        found = found[found.bins.isna() if bins is None else found.bins == bins]
        found = found[found.epsilon.isna() if epsilon is None else found.epsilon == epsilon]
        (value,) = found[f"{metric}_mean"]
        return decimals(value)

    def ladder(self, epsilon: float, column: str) -> str:
        """Mean over the data sets."""
        table = self.tables["ladder"]
        return decimals(table[table.epsilon == epsilon][column].mean())

    def attack(self, queries: int, column: str) -> str:
        table = self.tables["attack"]
        return f"{100 * table[table.queries == queries][column].iloc[0]:.1f}"

    def attack_error(self) -> str:
        """Standard error of the share of right guesses with noise that is kept, in per cent."""
        return f"{50 / FULL.answers**0.5:.1f}"

    def splits_of(self, dataset: str) -> str:
        """The least and the largest AUROC of plain k-NN over the splits, from every single run."""
        rows = pd.read_parquet(self.folder / "results.parquet")
        mine = rows[(rows.dataset == dataset) & (rows.variant == "base") & (rows.algorithm == "kNN") & ~rows.control]
        values = mine[mine.k == self.k(dataset)].auroc
        return f"{decimals(values.min())} to {decimals(values.max())}"


def short(number: float) -> str:
    """Without zeros at either end."""
    return f"{number:g}".lstrip("0")


def main(folder: Path, to: Path = HERE) -> None:
    environment = Environment(
        loader=FileSystemLoader(HERE),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Markdown
    )
    page = environment.get_template("reproduction.md.j2").render(
        run=Run(folder),
        study=FULL,
        tolerance=short(TOLERANCE),
        twice=short(2 * TOLERANCE),
        nearly_all=round(100 * NEARLY_ALL),
        acceptable=short(ACCEPTABLE),
        word=lambda found: {"true": "holds", "false": "fails"}.get(str(found).lower(), ""),
    )
    (to / "reproduction.md").write_text(page + "\n")
    for name in PICTURES:
        shutil.copyfile(folder / "figures" / f"{name}.png", to / f"reproduction-{name}.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
