"""Shared by all tests."""

import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))  # naive.py and strategies.py

settings.register_profile("dpoutlier", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("dpoutlier")
