"""What was measured, as it comes and at the end: a table of targets, tables of details, one plot."""

from pathlib import Path

HEAD = """# Measured

One run of `make bench`: everything side by side, in turn, medians. Ratios are the result; times are those of one machine. One
thread each unless said. {about}.

This is about speed alone. What a private score is worth, at 30 features above all, is another question: see the data-free
control in [how it works](../docs/how-it-works.md#the-data-free-control).

"""


class Report:
    """Collects targets and sections, prints them as they come."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.targets, self.sections = [], []

    def target(self, what, measured, wanted, *, at_most=False, unit="x"):
        """One line of the first table: a figure, and what was asked for."""
        met = measured <= wanted if at_most else measured >= wanted
        bound = f"<= {wanted:g} {unit}" if at_most else f">= {wanted:g} {unit}"
        self.targets.append((what, f"{measured:.3g} {unit}", bound, "yes" if met else "**no**"))
        print(f"{what:<72}{measured:>10.3g} {unit:<4} {bound:>14}  {'' if met else 'SHORT'}", flush=True)

    def section(self, title, text, head, rows):
        """A table of details, its cells as text."""
        self.sections.append((title, text, head, rows))
        print(f"\n{title}", flush=True)
        for row in [head, *rows]:
            print("  " + "".join(f"{cell!s:<22}" for cell in row), flush=True)

    def write(self, about):
        if self.quick:
            print("\nquick: nothing written")
            return
        parts = [HEAD.format(about=about), _table(("what", "measured", "asked for", "met"), self.targets)]
        parts.append("\n![Points per second against the number of reference rows](points_per_second.png)\n")
        for title, text, head, rows in self.sections:
            parts.append(f"\n## {title}\n\n{text}\n\n" + _table(head, rows))
        (self.folder / "results.md").write_text("".join(parts))
        print(f"\nwrote {self.folder / 'results.md'}")


def _table(head, rows):
    lines = ["| " + " | ".join(map(str, row)) + " |" for row in [head, ["---"] * len(head), *rows]]
    return "\n".join(lines) + "\n"
