"""Memory: nothing is as large as the table."""

import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
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
detector = DPGridKNN(1, features=(0, 1), bins=bins, max_cells=2000)
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


FROM_FILE = """
import sys
from pathlib import Path
import pyarrow.dataset as ds
from dpoutlier import DPForest, DPGridKNN, DPMarginals
memory = lambda name: int(Path("/proc/self/status").read_text().split(name + ":")[1].split()[0]) * 1024
path, make, action = sys.argv[1:]
bounds = {f"x{j}": (0, 1) for j in range(8)}
detector = {
    "grid": DPGridKNN(1, features=bounds, bins=4, n_jobs=2),
    "forest": DPForest(1, features=bounds, n_trees=3, depth=5),
    "marginals": DPMarginals(1, features=bounds),
}[make]
detector.fit(Path(path).with_name("small.parquet"))
before = memory("VmRSS")
Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
if action == "read":
    import pyarrow.parquet as pq
    rows = pq.read_table(path)
else:
    detector.fit(ds.dataset(path) if action == "dataset" else path)
print(memory("VmHWM") - before)
"""


@pytest.fixture(scope="module")
def large_files(tmp_path_factory):
    """Half a gigabyte of rows in row groups of two sizes: many, and one that holds them all."""
    folder, schema = tmp_path_factory.mktemp("large"), pa.schema([(f"x{j}", pa.float64()) for j in range(8)])
    piece = pa.table(list(np.random.default_rng(0).random((8, 2**20))), schema)
    pq.write_table(piece.slice(0, 1000), folder / "small.parquet")
    pq.write_table(pa.concat_tables([piece] * 8), folder / "many.parquet", row_group_size=2**19, use_dictionary=False)
    pq.write_table(pa.concat_tables([piece] * 8), folder / "one.parquet", row_group_size=2**23, use_dictionary=False)
    yield folder
    for path in folder.iterdir():
        path.unlink()


@pytest.mark.slow
def test_a_csv_file_is_fitted_in_a_part_of_its_size(tmp_path):
    line = ",".join(f"{value:.14f}" for value in np.random.default_rng(0).random(8)) + "\n"
    head = ",".join(f"x{j}" for j in range(8)) + "\n"
    (tmp_path / "rows.csv").write_text(head + line * 800_000)  # 110 MB, and 50 as numbers
    pq.write_table(pa.table({f"x{j}": [0.5] for j in range(8)}), tmp_path / "small.parquet")
    assert growth_from_file(tmp_path / "rows.csv", "grid") < 72 * 2**20


def growth_from_file(path, make, action="file"):
    command = [sys.executable, "-c", FROM_FILE, str(path), make, action]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.slow
def test_a_file_that_is_read_whole_would_be_seen(large_files):
    assert growth_from_file(large_files / "many.parquet", "grid", "read") > 480 * 2**20


@pytest.mark.slow
@pytest.mark.parametrize("groups", ["many", "one"])
@pytest.mark.parametrize(
    ("make", "action"), [("grid", "file"), ("forest", "file"), ("marginals", "file"), ("grid", "dataset")]
)
def test_a_file_is_fitted_in_a_part_of_the_memory_that_it_would_take(groups, make, action, large_files):
    assert growth_from_file(large_files / f"{groups}.parquet", make, action) < 256 * 2**20
