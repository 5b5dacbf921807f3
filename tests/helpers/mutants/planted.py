"""Plant a bug in a copy of the package, run the one test that should notice, and judge what it said."""

import compileall
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .patching import Patch, patched
from .planted_child import OUTPUT, SOURCE

HELPERS = Path(__file__).parents[1]
ROOT = HELPERS.parents[1]
PACKAGE = ROOT / "src" / "dpoutlier"
SECONDS = 300  # after which a run of one test counts as broken
SECONDS_MORE = 30  # for each further test of the run: caches may be cold, and the machine busy


def sources_of(package: Path) -> dict[str, str]:
    """The Python files of the package by their paths below it."""
    return {path.relative_to(package).as_posix(): path.read_text(encoding="utf-8") for path in package.rglob("*.py")}


class Verdict(StrEnum):
    """What became of a planted bug."""

    CAUGHT = "caught"
    SURVIVED = "survived"
    BROKEN = "broken"
    """The test could not be run to its end, or its error was not one of its own assertions: that proves nothing."""


@dataclass(frozen=True)
class Found:
    """A verdict with its reason."""

    verdict: Verdict
    why: str


class Copy:
    """A copy of the package in a folder of its own, in which bugs are planted one after the other.

    Compiled code comes with it: numba keeps that in a folder named by the path of the source, so the name is computed again.
    """

    def __init__(self, folder: Path) -> None:
        self.source = folder / "src"
        self.package = self.source / "dpoutlier"
        # With the times of all files: by these compiled code is known to be theirs.
        shutil.copytree(PACKAGE, self.package, ignore=_in_the_making, copy_function=_copy_if_there)
        for cache in self.package.glob(f"kernels/__pycache__/*/{_numba_folder(PACKAGE / 'kernels')}"):
            cache.rename(cache.with_name(_numba_folder(self.package / "kernels")))
        compileall.compile_dir(self.package, quiet=2)
        self._output = folder / "ended.json"
        self._patched = 0

    @contextmanager
    def planted(self, patches: Iterable[Patch]) -> Iterator[None]:
        """The copy with these patches; afterwards it is as it was."""
        before: dict[Path, tuple[bytes, os.stat_result]] = {}
        self._patched += 1
        try:
            for file, text in patched(sources_of(self.package), patches).items():
                path = self.package / file
                before[path] = path.read_bytes(), path.stat()
                path.write_text(text, encoding="utf-8")
                # Python tells its compiled files apart by whole seconds.
                os.utime(path, (0, before[path][1].st_mtime + 2 * self._patched))
            yield
        finally:
            for path, (content, stat) in before.items():
                path.write_bytes(content)
                os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))

    def judge(self, patches: Iterable[Patch], node: str) -> Found:
        """Plant, run the test, and say whether it noticed."""
        with self.planted(patches):
            return self.run([node])[node]

    def run(self, nodes: list[str]) -> dict[str, Found]:
        """Run tests on the copy as it stands, in a process of their own."""
        self._output.unlink(missing_ok=True)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.source), str(HELPERS)]),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # none is needed, and some take long to start
            OUTPUT: str(self._output),
            SOURCE: str(self.source),
        }
        environment.pop("PYTEST_XDIST_WORKER", None)
        environment.pop("PYTEST_ADDOPTS", None)
        seconds = SECONDS + SECONDS_MORE * (len(nodes) - 1)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "mutants.planted_child", "--tb=short", "-m", "", *nodes]
        try:
            done = subprocess.run(
                command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return dict.fromkeys(nodes, Found(Verdict.BROKEN, f"the run took more than {seconds} seconds"))
        if not self._output.exists():
            return dict.fromkeys(nodes, Found(Verdict.BROKEN, done.stdout[-2000:] + done.stderr[-2000:]))
        report = json.loads(self._output.read_text(encoding="utf-8"))
        if report["package"] != str(self.source):
            return dict.fromkeys(nodes, Found(Verdict.BROKEN, f"the test took dpoutlier from {report['package']}"))
        if report["code"] not in {0, 1}:
            return dict.fromkeys(nodes, Found(Verdict.BROKEN, done.stdout[-2000:] + done.stderr[-2000:]))
        return {node: _verdict([one for one in report["ended"] if one["node"] == node]) for node in nodes}


def _in_the_making(folder: str, names: list[str]) -> set[str]:
    """Compiled files that another process may be writing: Python and numba name them otherwise until they are whole."""
    whole = (".pyc", ".nbi", ".nbc")
    in_cache = "__pycache__" in Path(folder).parts
    return {name for name in names if in_cache and not name.endswith(whole) and not (Path(folder) / name).is_dir()}


def _copy_if_there(source: str, target: str) -> None:
    """Copy a file with its times; a compiled one may be gone by now, and is made again when it is needed."""
    try:
        shutil.copy2(source, target)
    except FileNotFoundError:
        if "__pycache__" not in Path(source).parts:
            raise


def _numba_folder(sources: Path) -> str:
    """Under which name numba keeps compiled code of files in that folder."""
    return f"{sources.name}_{hashlib.sha1(str(sources.absolute()).encode(), usedforsecurity=False).hexdigest()}"


def _verdict(ended: list[dict]) -> Found:
    """Verdict on the reports of one test: one of its call, and more only if set-up or tear-down failed."""
    why = "; ".join(f"{one['phase']} {one['outcome']} {' | '.join(one['errors'])}" for one in ended) or "it did not run"
    if len(ended) != 1 or ended[0]["phase"] != "call":
        return Found(Verdict.BROKEN, why)
    if ended[0]["outcome"] == "passed":
        return Found(Verdict.SURVIVED, why)
    return Found(Verdict.CAUGHT if ended[0]["by_test"] else Verdict.BROKEN, why)
