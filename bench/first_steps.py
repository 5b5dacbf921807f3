"""What a user waits for first: --help, and thirty features of ten bins. Prints a table; times are of this machine."""

import resource
import subprocess
import sys
import time

import numpy as np
from sklearn.datasets import load_breast_cancer

from dpoutlier import DPGridKNN


def help_seconds(*command: str) -> float:
    """Median of seven runs."""
    times = []
    for _ in range(7):
        start = time.perf_counter()
        subprocess.run(["dpoutlier", *command, "--help"], check=True, capture_output=True)
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def main() -> None:
    rows = [
        (f"dpoutlier {' '.join(c)} --help", help_seconds(*c), 0.3)
        for c in ((), ("fit",), ("score",), ("inspect",), ("demo",))
    ]
    X, y = load_breast_cancer(return_X_y=True)
    benign, malignant = X[y == 1], X[y == 0]
    points = np.concatenate([benign[285:], malignant[:10]])
    bounds = (np.zeros(30), 10.0 ** np.ceil(np.log10(X.max(axis=0))))  # powers of ten, as one would declare
    detector = DPGridKNN(1, bounds=bounds, bins=10).fit(benign[:285])
    detector.outlier_scores(points[:1])  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    walk = detector.walk(points)
    rows.append(("82 points, d=30, b=10, epsilon=1", time.perf_counter() - start, 10.0))
    for name, seconds, target in rows:
        print(f"{name:<36}{seconds:>9.3f} s   asked for: at most {target:g} s")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"{'peak memory of that process':<36}{peak / 1024:>9.0f} MB  (before scoring {before / 1024:.0f} MB)")
    print(f"{'cells visited, median and largest':<36}{np.median(walk.visited):>9.0f}, {walk.visited.max()}")


if __name__ == "__main__":
    sys.exit(main())
