"""What the server uses of uvicorn beyond its documentation: there, as expected, in the range of versions that is declared."""

import ast
import inspect
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from uvicorn import Config, Server
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.supervisors import Multiprocess
from uvicorn.supervisors.multiprocess import Process

import dpoutlier.server

TESTED = SpecifierSet(">=0.37,<0.55")
ROOT, SERVER = Path(__file__).parents[2], Path(dpoutlier.server.__file__).parent
IMPORTED = {
    "protocol.py": {"uvicorn.protocols.http.httptools_impl.HttpToolsProtocol"},
    "run.py": {"uvicorn.Config", "uvicorn.Server"},
    "supervisor.py": {"uvicorn.supervisors.Multiprocess", "uvicorn.supervisors.multiprocess.Process"},
}
CALLS = {
    HttpToolsProtocol: {
        "connection_made": ["self", "transport"],
        "connection_lost": ["self", "exc"],
        "data_received": ["self", "data"],
        "on_message_begin": ["self"],
        "on_header": ["self", "name", "value"],
        "on_headers_complete": ["self"],
        "on_body": ["self", "body"],
        "on_message_complete": ["self"],
        "on_response_complete": ["self"],
        "send_400_response": ["self", "msg"],
        "timeout_keep_alive_handler": ["self"],
        "shutdown": ["self"],
    },
    Multiprocess: {
        "__init__": ["self", "config", "sockets"],
        "init_processes": ["self"],
        "keep_subprocess_alive": ["self"],
    },
    Process: {"ping": ["self", "timeout"], "is_alive": ["self", "timeout"]},
    Server: {"__init__": ["self", "config"], "run": ["self", "sockets"]},
}
ATTRIBUTES = {
    HttpToolsProtocol: {"connections", "cycle", "headers", "loop", "scope", "transport", "url"},
    RequestResponseCycle: {"disconnected", "message_event", "response_complete", "response_started"},
    Multiprocess: {"processes", "should_exit", "signal_queue"},
    Process: {"parent_conn", "process"},
}


def test_the_declared_range_is_the_tested_one_and_has_the_installed_version():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["server"]
    (uvicorn,) = (one for one in map(Requirement, declared) if one.name == "uvicorn")
    assert uvicorn.specifier == TESTED
    assert TESTED.contains(version("uvicorn"))


def test_nothing_else_of_uvicorn_is_used():
    found = {}
    for path in SERVER.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "uvicorn":
                found.setdefault(path.name, set()).update(f"{node.module}.{one.name}" for one in node.names)
            assert not isinstance(node, ast.Import) or all(one.name.split(".")[0] != "uvicorn" for one in node.names)
    assert found == IMPORTED


@pytest.mark.parametrize(("owner", "name"), [(owner, name) for owner, calls in CALLS.items() for name in calls])
def test_methods_that_are_overridden_or_called_have_their_parameters(owner, name):
    parameters = list(inspect.signature(getattr(owner, name)).parameters.values())
    wanted = CALLS[owner][name]
    assert [one.name for one in parameters][: len(wanted)] == wanted
    assert all(one.default is not one.empty for one in parameters[len(wanted) :])


@pytest.mark.parametrize("owner", ATTRIBUTES)
def test_attributes_that_are_used_are_set(owner):
    tree = ast.parse(inspect.getsource(owner).lstrip())
    targets = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)]
    assert {one.attr for one in targets if isinstance(one.value, ast.Name) and one.value.id == "self"} >= ATTRIBUTES[
        owner
    ]


def test_the_supervisor_asks_workers_by_their_ping():
    """The server replaces ``ping``, which ``is_alive`` must call."""
    asked = []
    process = Process.__new__(Process)
    process.process = type("Alive", (), {"is_alive": lambda _: True})()
    process.ping = lambda timeout: asked.append(timeout) or False
    assert process.is_alive(timeout=3) is False
    assert asked == [3]


def test_the_options_of_the_configuration_are_there():
    text = (SERVER / "run.py").read_text(encoding="utf-8")
    (call,) = (
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Config"
    )
    assert {one.arg for one in call.keywords} <= set(inspect.signature(Config).parameters)
