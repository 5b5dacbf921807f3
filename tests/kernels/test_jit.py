"""Compiled kernels are kept. After an edit in any kernel file, all are compiled again."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import dpoutlier.kernels.jit as jit

KERNELS = Path(jit.__file__).parent


def folder_for(copy, **environment):
    where = f"import sys; sys.path.insert(0, {str(copy)!r})\n"
    program = where + "import dpoutlier.kernels.jit as j; print(j.__file__, j.cache_folder())"
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=env
    ).stdout.split()


def test_an_edit_in_any_kernel_file_changes_the_folder(tmp_path):
    shutil.copytree(KERNELS.parent, tmp_path / "dpoutlier", ignore=shutil.ignore_patterns("__pycache__"))
    file, before = folder_for(tmp_path)
    assert file.startswith(str(tmp_path))
    for name in ("wide.py", "siphash.py"):
        path = tmp_path / "dpoutlier" / "kernels" / name
        path.write_text(path.read_text() + "\n# edited\n")
        _, after = folder_for(tmp_path)
        assert after != before
        before = after


def test_the_cache_can_be_switched_off_and_a_missing_home_is_no_error(tmp_path):
    assert folder_for(KERNELS.parent.parent, DPOUTLIER_KERNEL_CACHE="0")[1] == "None"
    assert folder_for(KERNELS.parent.parent, HOME="", XDG_CACHE_HOME="")[1] != "None"
