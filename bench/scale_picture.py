"""Draw docs/scale.png, time and memory of fits from Parquet as the file grows, and print the tables of docs/scale.md.

Takes some minutes and 8 GB of disk: python bench/scale_picture.py
"""

import tempfile
import time
from pathlib import Path

import duckdb
import matplotlib as mpl
import polars as pl

mpl.use("Agg")
from matplotlib import pyplot as plt

from dpoutlier.engines.expressions.values import value_frame
from dpoutlier.engines.registry import query_engine_of
from dpoutlier.features.domain import Domain
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.trees import Trees
from dpoutlier.trusted.in_engine import EngineReference
from scale import BINS, FEATURES, NAMES, measure, write_rows

SIZES = (10**5, 10**6, 10**7, 10**8)
SHOWN = ("DPGridKNN", "DPMarginals", "DPForest", "Polars, scan and group by a column", "Polars, group by an expression")
ROUNDS = 3


def main() -> None:
    """Measure, print, draw."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        small = write_rows(folder / "small.parquet", 10**4)
        found = {}
        for n in SIZES:
            path = write_rows(folder / "rows.parquet", n)
            for name in SHOWN:
                runs = [measure(name, small, path) for _ in range(ROUNDS)]
                found[name, n] = sorted(runs)[ROUNDS // 2]
                print(f"{name:<40}{n:>12,} rows{found[name, n][0]:>9.3f} s{found[name, n][1]:>8.0f} MB", flush=True)
        lazy_frames(write_rows(folder / "rows.parquet", 2 * 10**6))
    draw(found)


def lazy_frames(path: Path) -> None:
    """Rows per second of a lazy frame: counted by its engine, and by a stream past the kernel."""
    domain = Domain((0.0,) * FEATURES, (1.0,) * FEATURES, tuple(NAMES))
    partitions = {"grid": Grid((BINS,) * FEATURES), "forest": Trees(FEATURES, 32, 12)}
    frames = {
        "Polars": pl.scan_parquet(path).select(NAMES),
        "DuckDB": duckdb.connect().read_parquet(str(path)).project(", ".join(NAMES)),
    }
    for engine, native in frames.items():
        found = query_engine_of(native)
        rows = EngineReference(value_frame(*found.plain(native, found.schema(native)), domain), domain, found)
        for name, partition in partitions.items():
            for way, count in (
                ("expression", rows.counts_by_query),
                ("stream", lambda p, rows=rows: rows._streamed().counts(p, 2)),
            ):
                times = []
                for _ in range(ROUNDS):
                    start = time.perf_counter()
                    count(partition)
                    times.append(time.perf_counter() - start)
                print(f"{engine}, {name}, {way}: {2 / min(times):.2f} million rows a second", flush=True)


def draw(found: dict[tuple[str, int], tuple[float, float]]) -> None:
    """Two panels over the number of rows: seconds, and the peak of memory."""
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for name in SHOWN:
        own = name.startswith("DP")
        label = name if own else name.replace(", scan", ": scan").replace(", group", ": group")
        style = {"linestyle": "-" if own else ":", "marker": "o", "markersize": 4, "label": label}
        for panel, which in zip(panels, (0, 1), strict=True):
            panel.plot(SIZES, [found[name, n][which] for n in SIZES], **style)
    panels[0].set(
        xscale="log", yscale="log", xlabel="reference rows of 8 features", title="seconds of a fit from Parquet"
    )
    panels[1].set(xscale="log", ylim=(0, 2000), xlabel="reference rows of 8 features", title="peak of memory, MB")
    panels[1].plot(
        SIZES, [n * FEATURES * 8 / 1e6 for n in SIZES], color="grey", linewidth=1, label="the rows as float64"
    )
    panels[1].legend(frameon=False, fontsize=8, loc="upper left")
    for panel in panels:
        panel.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parents[1] / "docs" / "scale.png", dpi=110)


if __name__ == "__main__":
    main()
