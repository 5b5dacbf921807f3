"""What is checked, refused and logged before a server listens."""

import json
import signal
import socket
import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from dpoutlier import GridKNN
from dpoutlier.cli.app import app as program
from dpoutlier.server.settings import Settings
from server_process import fitted


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("server")
    fitted(folder, "a.dpo", target_fpr=0.1)
    return folder


def refused(*arguments, code=2):
    ran = CliRunner().invoke(program, ["serve", *map(str, arguments)])
    assert ran.exit_code == code, ran.stderr
    return ran.stderr


def test_what_cannot_be_served_is_refused_before_the_start(folder, tmp_path):
    model = folder / "a.dpo"
    assert "--keys FILE" in refused(model)
    assert "does not exist" in refused(tmp_path / "none.dpo", "--open")
    assert "does not exist" in refused(model, "--keys", tmp_path / "none")
    assert "two models have the id 'a'" in refused(model, model, "--open")
    keyed = fitted(tmp_path, "k.secret.dpo", detector="DPGridKNN", counts="keyed")
    assert "--secret-models" in refused(keyed, "--open")
    twin = GridKNN((0, 1), k=1, bins=3).fit(np.zeros((9, 2))).save(tmp_path / "t.secret.dpo")
    assert "gives no privacy" in refused(twin, "--open", "--secret-models")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        assert "cannot listen" in refused(model, "--open", "--port", taken.getsockname()[1])
    assert "go together" in refused(model, "--open", "--tls-cert", model)
    assert "in PEM" in refused(model, "--open", "--tls-cert", model, "--tls-key", model)
    assert "give only one of them" in refused(model, "--open", "--keys", model)
    assert f"--tls-cert {tmp_path / 'none'}" in refused(
        model, "--open", "--tls-cert", tmp_path / "none", "--tls-key", model
    )
    assert f"--tls-key {tmp_path / 'none'}" in refused(
        model, "--open", "--tls-cert", model, "--tls-key", tmp_path / "none"
    )
    for host in ("198.51.100.7", "no.such.host.invalid"):
        told = refused(model, "--open", "--host", host, "--port", 0)
        assert "--host" in told
        assert "--port" not in told


def test_an_audit_log_that_cannot_be_used_is_named(folder, tmp_path):
    model, other = folder / "a.dpo", tmp_path / "notes.txt"
    other.write_text("some notes\n")
    absent = tmp_path / "no" / "audit.jsonl"
    for path, what in (
        (absent, "in a folder that exists"),
        (other, "is not an audit log"),
        (tmp_path, "cannot be written"),
    ):
        told = refused(model, "--open", "--audit", path, "--port", 0)
        assert f"--audit {path}" in told
        assert what in told
    assert other.read_text() == "some notes\n"
    told = refused(model, "--open", "--audit", "/dev/full", "--port", 0)
    assert "--audit /dev/full cannot be written: No space left" in told


def test_what_is_logged_at_the_start(folder, monkeypatch, capfd):
    from dpoutlier.server import run

    lines = []
    monkeypatch.setattr("uvicorn.Server.run", lambda *_, **__: lines.append("runs"))
    real = run.LoadedModels.load_all
    monkeypatch.setattr(
        run.LoadedModels, "load_all", lambda models: lines.extend(capfd.readouterr().err.splitlines()) or real(models)
    )
    handlers = [signal.getsignal(one) for one in (signal.SIGTERM, signal.SIGINT)]
    monkeypatch.setenv("DPOUTLIER_SERVER", "")
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")
    try:
        for host, encrypted in (("127.0.0.1", True), ("0.0.0.0", False)):
            lines.clear()
            run.serve(Settings((("a", str(folder / "a.dpo")),), host=host, port=0))
            assert lines[-1] == "runs"
            assert json.loads(lines[0])["event"] == "starting"  # before anything that takes long
            events = [json.loads(line)["event"] for line in capfd.readouterr().err.splitlines()]
            assert ("not-encrypted" in events) == (not encrypted)
            assert "listening" in events
    finally:
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), handlers, strict=True):
            signal.signal(number, handler)


@pytest.mark.parametrize("absent", ["fastapi", "httptools"])
def test_without_the_extra_it_says_what_to_install(folder, absent):
    code = (
        "import importlib.util as u, sys; real = u.find_spec; "
        "u.find_spec = lambda name, *more: None if name == '" + absent + "' else real(name, *more); "
        f"sys.argv = ['dpoutlier', 'serve', {str(folder / 'a.dpo')!r}, '--open']; "
        "from dpoutlier.cli.app import main; main()"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert "pip install 'dpoutlier[server]'" in ran.stderr
    assert absent in ran.stderr
