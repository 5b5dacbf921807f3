"""A Spark session for tests: two executors in processes of their own, as on a cluster, with this Python as their worker.

Tests that use it have "spark" in their names, by which conftest gives all of them to one process of pytest.
"""

import contextlib
import os
import shutil
import sys
import warnings
from pathlib import Path
from unittest import mock

import pytest

import dpoutlier

QUIET = """\
appender.none.type = Null
appender.none.name = none
rootLogger.level = off
rootLogger.appenderRef.none.ref = none
"""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.session.timeZone": "UTC",
    "spark.task.maxFailures": "2",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on a local cluster of two executors."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none on the path")
    pytest.importorskip("pyspark", reason="Spark is an extra: dpoutlier[spark]")
    with running(tmp_path_factory.mktemp("spark")) as session:
        yield session


@contextlib.contextmanager
def running(folder, **more):
    """A session that keeps its files in a folder, and ends with its processes; ``more`` are settings in place of those above."""
    import pyspark
    from pyspark.sql import SparkSession

    folder.mkdir(exist_ok=True)
    (folder / "log4j2.properties").write_text(QUIET, "utf-8")
    quiet = f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}"
    here = Path(__file__).parent
    # Functions of tests are pickled by name.
    path = os.pathsep.join(map(str, [Path(dpoutlier.__file__).parents[1], here, here.parents[1]]))
    given = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_DIR": str(folder / "work"),
    }
    settings = {
        **SETTINGS,
        "spark.executorEnv.PYTHONPATH": path,
        "spark.driver.extraJavaOptions": quiet,
        "spark.executor.extraJavaOptions": quiet,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
        **more,
    }
    with mock.patch.dict(os.environ, given), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about what Spark itself uses
        builder = SparkSession.builder.master("local-cluster[2,1,1024]").appName("dpoutlier tests")
        session = builder.config(map=settings).getOrCreate()
    try:
        yield session
    finally:
        gateway = pyspark.SparkContext._gateway
        session.stop()
        gateway.shutdown()
        gateway.proc.stdin.close()
        gateway.proc.wait(timeout=60)
        pyspark.SparkContext._gateway = pyspark.SparkContext._jvm = None  # the next session starts its own


def executors(session):
    """The processes of the session's executors: those below the process that this test run has started."""
    parents, below = {}, {session.sparkContext._gateway.proc.pid}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    return [pid for pid in sorted(below) if b"CoarseGrainedExecutorBackend" in _command(pid)]


def _command(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""
