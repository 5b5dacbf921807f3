"""A fit on a Parquet file reads it batch by batch, and gives what the table gives."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from dpoutlier import KNN, DPGridKNN, GridKNN
from dpoutlier.exceptions import ReferenceDataError
from dpoutlier.tables import batched
from dpoutlier.tables.parquet import ParquetTable

NAMES = ("a", "b", "c")
ROWS = np.random.default_rng(0).uniform(size=(5000, 3))
POINTS = np.random.default_rng(1).uniform(size=(100, 3))
BOUNDS = dict.fromkeys(NAMES, (0, 1))


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A file with nulls, text, whole numbers and a column too many, in another order; batches much smaller than it."""
    monkeypatch.setattr(batched, "BATCH", 2100)
    a = pa.array(ROWS[:, 0], mask=np.arange(len(ROWS)) % 7 == 0)
    b = pa.array([repr(float(v)) if i % 5 else "no number" for i, v in enumerate(ROWS[:, 1])])
    table = pa.table({"c": (ROWS[:, 2] * 2).astype(int), "more": np.arange(len(ROWS)), "b": b, "a": a})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=1100)
    return tmp_path / "rows.parquet", table.select(NAMES)


@pytest.mark.filterwarnings("ignore::dpoutlier.exceptions.UnsafeWarning")
@pytest.mark.parametrize(
    "make",
    [
        lambda: DPGridKNN(1, features=BOUNDS, unsafe_seed=0, n_rows_hint="estimate", target_fpr=0.1),
        lambda: DPGridKNN(1, features=BOUNDS, bins=500, unsafe_seed=0, n_jobs=2),
        lambda: GridKNN(BOUNDS, bins=6, target_fpr=0.1),
        lambda: KNN(BOUNDS),
    ],
)
def test_a_file_gives_what_its_table_gives(make, written):
    path, table = written
    from_file, from_table = make().fit(ParquetTable(path, NAMES)), make().fit(table)
    assert (from_file.outlier_scores(POINTS) == from_table.outlier_scores(POINTS)).all()
    if getattr(from_file, "target_fpr", None) is not None:
        assert from_file.offset_ == from_table.offset_
    assert from_file.feature_names_in_.tolist() == list(NAMES)


def test_a_damaged_file_fails_with_a_fixed_text(written, tmp_path):
    path, _ = written
    content = bytearray(path.read_bytes())
    content[200:4000] = b"x" * 3800
    (tmp_path / "damaged.parquet").write_bytes(bytes(content))
    with pytest.raises(ReferenceDataError, match="The cause is not shown") as caught:
        DPGridKNN(1, features=BOUNDS, bins=4).fit(ParquetTable(tmp_path / "damaged.parquet", NAMES))
    assert caught.value.__context__ is None


def test_no_rows_in_a_file_is_a_fit_like_any_other(tmp_path):
    pq.write_table(pa.table({name: pa.array([], pa.float64()) for name in NAMES}), tmp_path / "none.parquet")
    detector = DPGridKNN(1, features=BOUNDS, n_rows_hint="estimate").fit(ParquetTable(tmp_path / "none.parquet", NAMES))
    assert np.isfinite(detector.outlier_scores(POINTS)).all()
