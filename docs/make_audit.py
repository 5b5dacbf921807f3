"""Put the result of ``dpoutlier audit`` into docs/audit.md: ``python docs/make_audit.py audit``, the folder of the audit."""

import csv
import shutil
import sys
from pathlib import Path

HERE = Path(__file__).parent
START, END = "<!-- the table: made by docs/make_audit.py -->", "<!-- end of the table -->"
CHANNELS = ("counts", "scores", "file")


def table_of(rows):
    """A line for each case: of each channel the sharpest bound, whatever the method."""
    epsilons = sorted({float(row["claimed"]) for row in rows})
    heads = [f"claimed {epsilon:g}" for epsilon in epsilons]
    lines = [f"| case | neighbours | counts | {' | '.join(heads)} |", "|" + "---|" * (3 + len(heads))]
    for key in dict.fromkeys((row["case"], row["neighbours"], row["counts"]) for row in rows):
        own = [row for row in rows if (row["case"], row["neighbours"], row["counts"]) == key]
        cells = []
        for epsilon in epsilons:
            here = [row for row in own if float(row["claimed"]) == epsilon]
            best = [
                max((float(row["bound"]) for row in here if row["channel"] == name), default=None) for name in CHANNELS
            ]
            cells.append(" / ".join("-" if bound is None else f"{bound:.2f}" for bound in best) if here else "")
        lines.append(f"| {' | '.join((*key, *cells))} |")
    return lines


def main():
    folder = Path(sys.argv[1])
    with (folder / "audit.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    page = HERE / "audit.md"
    text = page.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    page.write_text("\n".join([before + START, "", *table_of(rows), "", END]) + after, encoding="utf-8")
    shutil.copyfile(folder / "audit.png", HERE / "audit.png")
    refuted = sum(row["refuted"] == "true" for row in rows)
    expected = [row for row in rows if row["expects_power"] == "true"]
    sharp = sum(float(row["bound"]) >= float(row["claimed"]) / 2 for row in expected)
    sys.stdout.write(f"{len(rows)} audits, {refuted} refuted, {sharp} of {len(expected)} see at least half\n")


if __name__ == "__main__":
    main()
