"""A plugin of the pytest that looks for a planted bug: it writes down how each test ended, and which dpoutlier it tested."""

import json
import os
from pathlib import Path

import pytest

OUTPUT, SOURCE = "DPOUTLIER_PLANTED_OUTPUT", "DPOUTLIER_PLANTED_SOURCE"
_ended = []


def leaves(error):
    """The errors themselves: hypothesis puts several into a group."""
    if isinstance(error, BaseExceptionGroup):
        return [leaf for one in error.exceptions for leaf in leaves(one)]
    return [error]


def raised_in(error):
    """The file whose line raised it."""
    trace, last = error.__traceback__, None
    while trace is not None:
        last, trace = trace.tb_frame.f_code.co_filename, trace.tb_next
    return last or ""


def is_of_a_test(error):
    """Whether a test failed by its own assertion. An assertion in the package does not count."""
    of_tests = isinstance(error, AssertionError | pytest.fail.Exception)
    return of_tests and not Path(raised_in(error)).is_relative_to(os.environ[SOURCE])


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    report = yield
    if report.when == "call" or report.outcome != "passed":
        found = leaves(call.excinfo.value) if call.excinfo is not None else []
        _ended.append(
            {
                "node": item.nodeid,
                "phase": report.when,
                "outcome": report.outcome,
                "errors": [f"{type(error).__name__}: {str(error)[:300]}" for error in found],
                "by_test": bool(found) and all(map(is_of_a_test, found)),
            }
        )
    return report


def pytest_sessionfinish(session, exitstatus):
    import dpoutlier

    content = {"code": int(exitstatus), "package": str(Path(dpoutlier.__file__).parent.parent), "ended": _ended}
    Path(os.environ[OUTPUT]).write_text(json.dumps(content), encoding="utf-8")
