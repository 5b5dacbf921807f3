"""The commands of docs/deploy.md: behind nginx, under systemd, and as nobody on a read-only file system."""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
import urllib3
from typer.testing import CliRunner

from dpoutlier import DPMarginals
from dpoutlier.cli.app import app
from server_process import make_key, running_server
from tls import certificate

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
POINTS = np.array([[0.5, 0.5], [0.1, 0.9], [7.0, 0.2]])

needs_nginx = pytest.mark.skipif(
    shutil.which("nginx") is None or shutil.which("openssl") is None,
    reason="nginx or openssl is missing (Debian: apt-get install nginx-light openssl)",
)
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is missing")
needs_namespaces = pytest.mark.skipif(
    os.geteuid() != 0
    or shutil.which("setpriv") is None
    or subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0,
    reason="root, unshare and setpriv are needed to make a read-only file system",
)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    rows = np.random.default_rng(0).uniform(0, 1, (500, 2))
    detector = DPMarginals(1, features={"a": (0, 1), "b": (0, 1)}, bins=4).fit(rows)
    return detector, detector.save(tmp_path_factory.mktemp("models") / "patients")


@pytest.fixture
def open_folder():
    """A folder that other users can reach; pytest's own are closed to them."""
    with tempfile.TemporaryDirectory(prefix="dpoutlier-test-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


CSV = "a,b\n" + "".join(f"{a},{b}\n" for a, b in POINTS)


def scores_of(answer):
    assert answer.status == 200, answer.data
    return [float(line.split(",")[0]) for line in answer.data.decode().splitlines()[1:]]


@pytest.mark.slow
@needs_nginx
def test_nginx_in_front_gives_the_same_scores_over_tls_and_logs_no_point(model, tmp_path):
    detector, path = model
    keys, port = tmp_path / "keys.json", free_port()
    key, (secret, cert) = make_key(keys), certificate(tmp_path)
    log = tmp_path / "access.log"
    with running_server(tmp_path, path, "--keys", keys) as server:
        own = (DEPLOY / "nginx.conf").read_text()
        for old, new in (
            ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"),
            ("/etc/ssl/certs/scores.example.org.pem", str(cert)),
            ("/etc/ssl/private/scores.example.org.key", str(secret)),
            ("/var/log/nginx/dpoutlier.log", str(log)),
            ("127.0.0.1:8765", f"127.0.0.1:{server.port}"),
        ):
            assert old in own
            own = own.replace(old, new)
        paths = "".join(
            f"{name}_temp_path {tmp_path}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (tmp_path / "nginx.conf").write_text(
            f"daemon off; pid {tmp_path}/pid; error_log {tmp_path}/error.log;\nevents {{}}\nhttp {{\n{paths}{own}\n}}\n"
        )
        nginx = subprocess.Popen(["nginx", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            pool = urllib3.PoolManager(ca_certs=str(cert), retries=urllib3.Retry(20, backoff_factor=0.05))
            url = f"https://localhost:{port}"
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "text/csv"}
            answer = pool.request("POST", f"{url}/v1/models/patients/score", headers=headers, body=CSV)
            assert scores_of(answer) == detector.outlier_scores(POINTS).tolist()
            assert pool.request("GET", f"{url}/v1/models?sentinel-7431=1").status == 401
            large = pool.request("POST", f"{url}/v1/models/patients/score", headers=headers, body=b"0" * (17 << 20))
            assert large.status == 413
            pool.clear()
        finally:
            nginx.terminate()
            nginx.wait(10)
    lines = log.read_text().splitlines()
    assert [line.split()[1] for line in lines[:2]] == [
        "200",
        "401",
    ]  # a third comes when nginx has closed that connection
    assert "sentinel" not in log.read_text()


@needs_systemd
def test_the_unit_is_one_that_systemd_takes_and_exposes_little(tmp_path):
    unit = tmp_path / "dpoutlier.service"
    text = (DEPLOY / "dpoutlier.service").read_text()
    unit.write_text(text.replace("/opt/dpoutlier/bin/dpoutlier", shutil.which("true")))
    checked = subprocess.run(["systemd-analyze", "verify", str(unit)], capture_output=True, text=True, check=False)
    assert not [line for line in checked.stderr.splitlines() if "dpoutlier.service" in line]
    rated = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", str(unit)], capture_output=True, text=True, check=False
    ).stdout
    assert float(re.search(r"exposure level for dpoutlier.service: ([0-9.]+)", rated)[1]) < 3


def test_the_options_that_the_files_use_exist():
    said = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"}).output
    unit, image = (DEPLOY / "dpoutlier.service").read_text(), (DEPLOY / "Dockerfile").read_text()
    command = re.search(r"ExecStart=(.*)", unit)[1] + re.search(r"ENTRYPOINT (.*)", image)[1]
    options = set(re.findall(r"--[a-z-]+", command))
    assert options == {"--keys", "--audit", "--workers", "--host"}
    assert all(f"{option} " in said for option in options)
    stages = image.split("FROM ")
    assert "USER 10001:10001" in stages[-1]
    assert stages[-1].index("USER") < stages[-1].index("ENTRYPOINT")


REACHABLE = """\
mount --make-rprivate /
mount --bind {base} {folder}/python
mount -t tmpfs -o mode=755 tmpfs {closed}
mkdir -p {base}
mount --bind {folder}/python {base}
"""
READ_ONLY = """\
mount --make-rprivate /
mount -t tmpfs -o size=64m tmpfs {folder}/tmp
mount --bind {folder}/cache {folder}/cache
mount --bind {folder}/audit {folder}/audit
mount -o remount,ro,bind /
for one in $(findmnt -rno TARGET | grep -v -e '^/proc' -e '^/sys' -e '^/dev' -e '^{folder}/'); do
    mount -o remount,ro,bind "$one" 2>/dev/null || true
done
if touch {folder}/written 2>/dev/null; then echo "the file system can be written" >&2; exit 9; fi
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set -all env -i PATH="$PATH" \\
    TMPDIR={folder}/tmp HOME=/nonexistent NUMBA_CACHE_DIR={folder}/cache PYTHONDONTWRITEBYTECODE=1 \\
    MPLCONFIGDIR={folder}/tmp {more} {python} -c \\
    'from dpoutlier.cli.app import main; main()' serve {folder}/models/patients.dpo --keys {folder}/keys/keys.json \\
    --audit {folder}/audit/audit.jsonl --workers 2 --port {port}
"""


@pytest.mark.slow
@needs_namespaces
def test_nobody_on_a_read_only_file_system_can_run_it(model, open_folder):
    """As the Dockerfile does: another user, no capabilities, nothing to write to but /cache, /audit and /tmp."""
    (detector, path), folder = model, open_folder
    for name in ("models", "keys", "cache", "audit", "tmp", "python"):
        (folder / name).mkdir()
        os.chown(folder / name, 10001, 10001)
    shutil.copy(path, folder / "models" / "patients.dpo")
    key, port = make_key(folder / "keys" / "keys.json"), free_port()
    os.chown(folder / "keys" / "keys.json", 10001, 10001)
    base = Path(sys.base_prefix).resolve()
    closed = next((one for one in reversed(base.parents) if not one.stat().st_mode & 0o001), None)
    reachable = "" if closed is None else REACHABLE.format(base=base, folder=folder, closed=closed)
    source = os.environ.get("PYTHONPATH")
    script = READ_ONLY.format(
        folder=folder, python=sys.executable, port=port, more=f"PYTHONPATH={source}" if source else ""
    )
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(["unshare", "--mount", "sh", "-ec", reachable + script], stderr=log)
    pool = urllib3.PoolManager(retries=False)
    try:
        until = time.monotonic() + 150
        while True:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < until, (folder / "log").read_text()
            try:
                if pool.request("GET", f"http://127.0.0.1:{port}/readyz", timeout=2).status == 200:
                    break
            except urllib3.exceptions.HTTPError:
                pass
            time.sleep(0.2)
        headers = {"Authorization": f"Bearer {key}", "Content-Type": "text/csv"}
        answer = pool.request(
            "POST", f"http://127.0.0.1:{port}/v1/models/patients/score", headers=headers, body=CSV, timeout=30
        )
        assert scores_of(answer) == detector.outlier_scores(POINTS).tolist()
        assert list((folder / "cache").rglob("*.nbc"))
    finally:
        pool.clear()
        server.terminate()
        assert server.wait(60) == 0
    assert (folder / "audit" / "audit.jsonl").stat().st_uid == 10001
