"""Where the five data sets are, if they are here. Tests that need them skip with this reason where they are not."""

import os
from pathlib import Path

import pytest

BESIDE = Path(__file__).parents[3] / "shared" / "data"
DATA = Path(os.environ.get("DPOUTLIER_DATA", BESIDE))
DATA_IS_HERE = (DATA / "lymphography.csv").is_file()
needs_data = pytest.mark.skipif(
    not DATA_IS_HERE, reason="the data sets are not here: name their folder in DPOUTLIER_DATA"
)
