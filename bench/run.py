"""All measurements, side by side in one run: ``make bench``. Writes bench/results.md and bench/points_per_second.png."""

import argparse
import os
import platform
import shutil
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
    os.environ.setdefault(name, "1")  # one thread for everybody, before anything is imported

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))  # naive, the definition

import numba
import numpy as np

from cluster import cluster
from constant_time import constant_time_counts
from fitting import fit_from_parquet, fit_in_memory
from forests import forest_file, forest_fit, forest_scoring
from growth import growth, walks_of
from kinds import kinds_of_features, sparse_release
from machine import peak_of_scoring, start_up
from report import Report
from scale import scale
from score_frames import scoring_frames
from scoring import against_definition, against_heap, against_plain_python, against_rivals, threads
from server import server


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="smaller sizes, to see that everything runs; no figures to keep"
    )
    parser.add_argument("--out", type=Path, default=Path(__file__).parent, help="folder for results.md and the plot")
    parser.add_argument("--rows", type=float, default=1e7, help="rows of the largest file, as 1e8")
    options = parser.parse_args()
    start = time.perf_counter()
    report = Report(options.out, quick=options.quick)
    against_rivals(report)
    against_plain_python(report)
    against_heap(report)
    against_definition(report)
    threads(report)
    growth(report)
    walks_of(report)
    fit_in_memory(report)
    forest_fit(report)
    forest_scoring(report)
    forest_file(report)
    kinds_of_features(report)
    sparse_release(report)
    constant_time_counts(report)
    with tempfile.TemporaryDirectory() as folder:
        fit_from_parquet(report, Path(folder))
        scoring_frames(report, Path(folder))
        scale(report, Path(folder), int(options.rows))
        if shutil.which("java") is not None:
            cluster(report, Path(folder))
        start_up(report, Path(folder))
        server(report, Path(folder))
    peak_of_scoring(report)
    versions = f"Python {platform.python_version()}, numpy {np.__version__}, numba {numba.__version__}"
    report.write(f"{versions}; {os.cpu_count()} cores ({processor()}); {time.perf_counter() - start:.0f} s in all")


def processor():
    """The processor's own name, if the system tells."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
