"""A fit and its scores on a Spark cluster of two processes, beside one machine. Alone: ``python bench/cluster.py --rows 1e7``.

Every result is compared with that of the single machine; a difference is an error. One fit loses an executor on the way.
"""

import argparse
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))  # spark_session

import numpy as np

from dpoutlier import DPForest, DPGridKNN, DPMarginals, GridKNN
from dpoutlier.model.file.manifest import arrays_of
from measure import interleaved
from report import Report
from scale import BINS, BOUNDS, FEATURES, NAMES, write_rows

ROUNDS = 3
SETTINGS = {
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.files.maxPartitionBytes": str(32 * 2**20),
    "spark.driver.maxResultSize": "2g",
    "spark.task.maxFailures": "4",
}
DETECTORS = {
    "grid": lambda: DPGridKNN(1, features=BOUNDS, bins=BINS, unsafe_seed=1, n_jobs=-1),
    "marginals": lambda: DPMarginals(1, features=BOUNDS, unsafe_seed=1, n_jobs=-1),
    "forest": lambda: DPForest(1, features=BOUNDS, n_rows_hint=10**7, unsafe_seed=1, n_jobs=-1),
}


def cluster(report, folder, n=10**7):
    """Times of fits and scores, on a cluster and on one machine; all of them agree to the bit."""
    from spark_session import executors, running

    warnings.simplefilter("ignore")  # that the noise is the same in all fits, and what Spark says of pandas
    n = 10**5 if report.quick else n
    path = write_rows(folder / "rows.parquet", n)
    with running(folder / "spark", **SETTINGS) as spark:
        frame = spark.read.parquet(str(path)).select(*NAMES)
        rows = []
        for name, make in DETECTORS.items():
            ways = {
                "one machine": lambda make=make: make().fit(path),
                "Spark": lambda make=make: make().fit(frame),
                "Spark, its own sum of the columns": lambda: frame.groupBy().sum(*NAMES).collect(),
            }
            found = {way: run() for way, run in ways.items() if "sum" not in way}
            same(found["one machine"], found["Spark"])
            times = interleaved(ways, rounds=ROUNDS)
            rows.append([f"fit, {name}", *(f"{n / times[way] / 1e6:.2f}" for way in ways)])
        cost = [cost_of_cells(frame, path, bins) for bins in (2, 5, 10, 20)]
        struck = lose_an_executor(lambda: DETECTORS["grid"]().fit(frame), lambda: executors(spark))
        same(DETECTORS["grid"]().fit(path), struck)
        rows.append(scores(DETECTORS["forest"]().fit(path), spark.read.parquet(str(path)), path, n))
    report.section(
        "On a cluster",
        f"{n:,} rows of {FEATURES} features in Parquet, {path.stat().st_size / 1e9:.1f} GB; million rows a second. Spark runs two "
        "executors of one core each on the same machine; the single machine has the same two cores. All models and scores agree "
        "to the bit, also after one of the executors was killed in the middle of a fit.",
        ["", "one machine", "Spark", "Spark, its own sum of the columns"],
        rows,
    )
    report.section(
        "What cells cost on a cluster",
        f"The same {n:,} rows on grids that are finer and finer, with exact counts: seconds of a fit.",
        ["bins for each feature", "occupied cells", "one machine", "Spark"],
        cost,
    )


def cost_of_cells(frame, path, bins):
    """Seconds of a fit on a grid with this number of bins, and how many cells come back."""
    twin = GridKNN(features=BOUNDS, bins=bins, n_jobs=-1)
    occupied = len(arrays_of(twin.fit(path).model_)["exact"])
    times = interleaved({"one machine": lambda: twin.fit(path), "Spark": lambda: twin.fit(frame)}, rounds=ROUNDS)
    return [bins, f"{occupied:,}", *(f"{seconds:.2f}" for seconds in times.values())]


def same(here, there):
    """The models released are equal to the last number."""
    first, second = arrays_of(here.model_), arrays_of(there.model_)
    if first.keys() != second.keys() or not all(np.array_equal(first[name], second[name]) for name in first):
        raise AssertionError("Spark has counted something else")


def lose_an_executor(fit, processes):
    """A fit during which the oldest executor is killed, half a second after the start."""
    before = processes()

    def strike():
        time.sleep(0.5)
        os.kill(before[0], signal.SIGKILL)

    thread = threading.Thread(target=strike)
    thread.start()
    found = fit()
    thread.join()
    if before[0] in processes():
        raise AssertionError("no executor fell")
    return found


def scores(detector, frame, path, n):
    """Scores of all rows, summed up so that no row comes back; and compared row by row."""
    import pyarrow.parquet as pq

    table = pq.read_table(path, columns=[*NAMES, "key"])
    scored = detector.score_frame(frame).select("outlier_score")
    wanted = np.sort(detector.outlier_scores(table.select(NAMES)))
    if not np.array_equal(np.sort(scored.toArrow().column(0).to_numpy()), wanted):
        raise AssertionError("Spark has scored something else")
    ways = {
        "one machine": lambda: detector.score_frame(table),
        "Spark": lambda: detector.score_frame(frame).write.format("noop").mode("overwrite").save(),
    }
    times = interleaved(ways, rounds=ROUNDS)
    return ["scores, forest", *(f"{n / times[way] / 1e6:.2f}" for way in ways), ""]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e7)
    options = parser.parse_args()
    if shutil.which("java") is None:
        sys.exit("Spark needs Java, and there is none on the path")
    with tempfile.TemporaryDirectory() as made:
        result = Report(Path(made), quick=False)
        cluster(result, Path(made), int(options.rows))
