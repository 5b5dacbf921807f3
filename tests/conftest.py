"""Shared by all tests: seeded noise and seeded hypothesis, so that a run can be repeated."""

import itertools
import re
import zlib

import pytest
from hypothesis import settings

from dpoutlier import _warn
from dpoutlier.noise.sources import SystemBytes, UnsafeSeededBytes
from shared_data import DATA
from spark_session import spark

__all__ = ["spark"]


@pytest.hookimpl(optionalhook=True)  # of pytest-xdist
def pytest_xdist_make_scheduler(config, log):
    """Tests that share what takes long to start go to one process: a Spark cluster; the servers and the browser of a file."""
    from xdist.scheduler import LoadScopeScheduling

    class Together(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if "spark" in nodeid.lower():
                return "spark"
            return nodeid.partition("::")[0] if re.match(r"tests/(page|server|client)/", nodeid) else nodeid

    return Together(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """All that needs a cluster is slow: to start one takes as long as a hundred other tests."""
    for item in items:
        if "spark" in item.nodeid.lower():
            item.add_marker(pytest.mark.slow)


_warn._fits = itertools.count(3)  # only test_warnings expects the warning about a second fit

settings.register_profile("dpoutlier", derandomize=True, deadline=None, print_blob=True)
settings.load_profile("dpoutlier")

_real_read = SystemBytes.read
_current = {"source": None}


def _read(self, n):
    return _real_read(self, n) if _current["source"] is None else _current["source"].read(n)


SystemBytes.read = _read


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """What a test draws from the system's generator comes from a stream of its own, unless it is about that generator."""
    real = item.get_closest_marker("system_noise") is not None
    _current["source"] = None if real else UnsafeSeededBytes(zlib.crc32(item.nodeid.encode()))


@pytest.fixture(scope="session")
def data():
    """The folder with the five data sets, for tests marked ``needs_data``."""
    return DATA


@pytest.fixture(scope="session")
def tiny_results(tmp_path_factory):
    """A whole study on small made-up data."""
    from experiments.measure.runner import run_study
    from made_data import TINY, made_sets

    return run_study(TINY, made_sets(), tmp_path_factory.mktemp("tiny"), 1, lambda *_: None)
