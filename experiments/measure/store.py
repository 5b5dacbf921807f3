"""Where finished tasks are kept: a file for each, written aside and renamed, so that a kill loses only what was under way."""

import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import dpoutlier
from dpoutlier.exceptions import InvalidParameterError
from experiments.measure.datasets import LabelledRows
from experiments.measure.files import write_whole
from experiments.measure.study import Study, Task

SECONDS = b"seconds"
LIBRARY, EXPERIMENTS = Path(dpoutlier.__file__).parent, Path(__file__).parents[1]
PACKAGES = ("numpy", "numba", "scipy", "scikit-learn")


def fingerprint(study: Study, data: Mapping[str, LabelledRows]) -> str:
    """Fingerprint of study, data, code and versions. Numbers that were computed with others are never taken for these."""
    content = {
        "study": asdict(study),
        "data": [data[name].digest() for name in (*study.sets, *study.tables)],
        "code": _code_digest(),
        "versions": [platform.python_version(), *map(version, PACKAGES)],
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def _code_digest() -> str:
    hasher = hashlib.sha256()
    for package, unrelated in ((LIBRARY, "cli"), (EXPERIMENTS, "report")):
        for path in sorted(package.rglob("*.py")):
            place = path.relative_to(package)
            if place.parts[0] not in (unrelated, "__main__.py"):
                hasher.update(
                    f"{package.name}/{place.as_posix()} ".encode() + hashlib.sha256(path.read_bytes()).digest()
                )
    return hasher.hexdigest()


@contextmanager
def alone_in(folder: Path) -> Iterator[None]:
    """Hold a lock on the folder. The system drops it when the process ends, however that happens."""
    try:
        import fcntl  # noqa: PLC0415 - not on every system
    except ImportError:
        yield
        return
    with (folder / ".lock").open("w") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InvalidParameterError(
                f"another run is at work in {folder}. Wait until it has ended, or choose another folder with --out."
            ) from None
        yield


class Store:
    """Results of the finished tasks of one study."""

    def __init__(self, folder: Path, fingerprint: str) -> None:
        self.fingerprint = fingerprint
        self.folder = folder / "parts" / fingerprint

    def open(self) -> None:
        """Make the folder; remove what a kill left half written."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for left in self.folder.glob(".*.part"):
            left.unlink()

    def path(self, task: Task) -> Path:
        return self.folder / f"{task.key}.parquet"

    def done(self, task: Task) -> bool:
        """Whether its result is there and can be read; what was damaged is run again."""
        try:
            pq.read_metadata(self.path(task))
        except (OSError, pa.ArrowException):
            return False
        return True

    def keep(self, task: Task, table: pa.Table, seconds: float) -> None:
        """The result of a task, with the time that it took beside it."""
        stamped = table.replace_schema_metadata({SECONDS: repr(seconds).encode()})
        write_whole(self.path(task), lambda stream: pq.write_table(stamped, stream))

    def read(self, tasks: Iterable[Task]) -> list[pa.Table]:
        return [pq.read_table(self.path(task)) for task in tasks]

    def seconds(self, tasks: Iterable[Task]) -> float:
        """Processor time of these tasks together."""
        metadata: Iterable[Mapping[bytes, bytes]] = (pq.read_schema(self.path(task)).metadata for task in tasks)
        return sum(float(entry[SECONDS]) for entry in metadata)
