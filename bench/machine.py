"""Start-up and memory, each in processes of their own."""

import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from dpoutlier import DPGridKNN

FIRST_SCORE = """
import sys, time
start = time.perf_counter()
import dpoutlier
dpoutlier.load(sys.argv[1]).score_samples([[0.1, 0.2]])
print(time.perf_counter() - start)
"""
MEMORY = """
import sys
from pathlib import Path
import numpy as np
from dpoutlier import DPGridKNN
d, bins, n = map(int, sys.argv[1:])
memory = lambda name: int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) / 1024
detector = DPGridKNN(1, features=(0, 1), bins=bins, max_cells=2000, n_jobs=2)
detector.fit(np.random.default_rng(0).random((2000, d))).outlier_scores(np.random.default_rng(1).random((300, d)))
points = np.random.default_rng(2).random((n, d))
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
detector.outlier_scores(points)
print(memory("VmHWM") - before - 8 * n / 2**20)
"""


def wait(*command):
    """Median seconds of seven runs, after one that fills the caches."""
    times = []
    for _ in range(8):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def start_up(report, folder):
    path = DPGridKNN(1, features=(0, 1), bins=4).fit(np.random.default_rng(0).random((50, 2))).save(folder / "small")
    tool = str(Path(sys.executable).with_name("dpoutlier"))
    command = [sys.executable, "-c", FIRST_SCORE, str(path)]
    runs = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(16)]
    report.target("import, load and first score, warm cache", statistics.median(runs[1:]), 0.7, at_most=True, unit="s")
    report.target("dpoutlier --help", wait(tool, "--help"), 0.3, at_most=True, unit="s")


def peak_of_scoring(report):
    n = 10**5 if report.quick else 10**6
    for d, bins in ((2, 30), (8, 4), (30, 2)):
        run = subprocess.run(
            [sys.executable, "-c", MEMORY, str(d), str(bins), str(n)], check=True, capture_output=True, text=True
        )
        report.target(
            f"memory beside input and output, {n:,} points, d={d}, two threads",
            float(run.stdout),
            64,
            at_most=True,
            unit="MB",
        )
