"""A model holds what was released, all of it made at once: nothing is added at first use, which would show what a fit needed."""

import importlib
import inspect
import pkgutil
from functools import cached_property

PARTS = ("counts", "features", "model", "noise", "partitions", "privacy", "scoring")


def classes():
    for folder in PARTS:
        package = importlib.import_module(f"dpoutlier.{folder}")
        for found in pkgutil.walk_packages(package.__path__, f"dpoutlier.{folder}."):
            module = importlib.import_module(found.name)
            yield from (one for _, one in inspect.getmembers(module, inspect.isclass) if one.__module__ == found.name)


def test_nothing_that_a_model_holds_is_made_at_first_use():
    found = list(classes())
    assert {"Domain", "Trees", "Margins", "Category", "DenseCounts", "Model"} <= {one.__name__ for one in found}
    assert [one for one in found for value in vars(one).values() if isinstance(value, cached_property)] == []
