"""The wheel alone, in a clean environment, runs the demonstration."""

import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_the_wheel_installed_alone_runs_the_demonstration(tmp_path):
    build = [sys.executable, "-m", "build", "--outdir", str(tmp_path / "dist"), str(ROOT)]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    assert list((tmp_path / "dist").glob("*.tar.gz"))
    names = zipfile.ZipFile(wheel).namelist()
    assert "dpoutlier/py.typed" in names
    assert "dpoutlier/trusted/PROOF.md" in names
    page = {f"dpoutlier/server/page/{file.name}" for file in (ROOT / "src/dpoutlier/server/page").iterdir()}
    assert "dpoutlier/server/page/index.html" in page
    assert page <= set(names)
    assert not [name for name in names if name.startswith(("tests", "experiments"))]

    venv.create(tmp_path / "clean", with_pip=True)
    python = tmp_path / "clean" / "bin" / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    subprocess.run(install, check=True, capture_output=True)
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    run = [tmp_path / "clean" / "bin" / "dpoutlier", "demo", "--out", tmp_path / "demo"]
    printed = subprocess.run(run, check=True, capture_output=True, text=True, cwd=tmp_path, env=clean).stdout
    assert "data-free control" in printed
    assert "pip install 'dpoutlier[plots]'" in printed
    assert not (tmp_path / "demo" / "demo.png").exists()
    refused = subprocess.run([*run[:1], "audit"], check=False, capture_output=True, text=True, cwd=tmp_path, env=clean)
    assert refused.returncode == 2
    assert "pip install 'dpoutlier[plots]'" in refused.stderr
    # None of the development tools may be needed, nor what pictures are drawn with.
    listed = subprocess.run([python, "-m", "pip", "list"], check=True, capture_output=True, text=True).stdout
    assert "matplotlib" not in listed
    assert "pandas" not in listed
    assert "polars" not in listed

    subprocess.run([*install[:-1], f"{wheel}[plots]"], check=True, capture_output=True)
    printed = subprocess.run(run, check=True, capture_output=True, text=True, cwd=tmp_path, env=clean).stdout
    assert "Picture: " in printed
    assert (tmp_path / "demo" / "demo.png").stat().st_size > 50_000
