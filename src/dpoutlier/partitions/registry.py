"""All partitions, by the word for them in files: a new one is its own file in this folder and one line here.

Fits, files, scores and statements read its cells; engines, SQL and explanations read its members.
"""

from typing import Any

from dpoutlier.partitions.base import Partition
from dpoutlier.partitions.grid import Grid
from dpoutlier.partitions.marginals import Margins
from dpoutlier.partitions.trees import Trees

PARTITIONS: dict[str, Any] = {"grid": Grid, "trees": Trees, "mixed-trees": Trees, "margins": Margins}


def partition_from_json(content: dict[str, Any]) -> Partition:
    """The partition that ``to_json`` described; KeyError for a name that is not known."""
    found: Partition = PARTITIONS[content["name"]].from_json(content)
    return found
