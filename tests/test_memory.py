"""Memory: nothing is as large as the table."""

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="peak memory is reset and read in /proc, which this system lacks",
)

MEASURE = """
from pathlib import Path
import numpy as np
from dpoutlier import DPGridKNN
memory = lambda name: int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) * 1024
bins, features = {bins}, {features}
detector = DPGridKNN(1, bounds=(0, 1), bins=bins, max_cells=2000)
detector.fit(np.random.default_rng(0).random((2000, features))).outlier_scores(np.random.default_rng(1).random((300, features)))
points = np.random.default_rng(2).random(({n}, features){dtype})
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
{action}
print(memory("VmHWM") - before - {output})
"""


def growth(**arguments):
    program = MEASURE.format(**{"dtype": "", "output": 0, **arguments})
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_a_copy_of_the_points_would_be_seen():
    assert growth(bins=4, features=8, n=10**6, action="points = points + 1; points.sum()") > 48 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize(("bins", "features"), [(30, 2), (4, 8), (2, 30)])
def test_scoring_a_million_points_takes_64_mb_beside_input_and_output(bins, features):
    more = growth(
        bins=bins,
        features=features,
        n=10**6,
        action="detector.set_params(n_jobs=2).outlier_scores(points)",
        output=8 * 10**6,
    )
    assert more < 64 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["", ", dtype=np.float32"])
def test_a_fit_makes_no_copy_of_the_rows(dtype):
    more = growth(bins=4, features=8, n=4 * 10**6, dtype=dtype, action="detector.set_params(n_jobs=2).fit(points)")
    assert more < 32 * 2**20  # the rows take 128 or 256 MB
