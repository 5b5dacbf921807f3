"""The attacks are scripts, in a folder of their own."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "examples" / "attacks"))
