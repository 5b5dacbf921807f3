"""A Spark session for tests: two executors in processes of their own, as on a cluster, with this Python as their worker.

Tests that use it carry ``pytest.mark.xdist_group("spark")``, so that one process of pytest alone starts it.
"""

import os
import shutil
import sys
import warnings
from pathlib import Path

import pytest

import dpoutlier

QUIET = "rootLogger.level = off\n"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "4",
    "spark.default.parallelism": "4",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
    "spark.sql.session.timeZone": "UTC",
    "spark.executor.cores": "1",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
}


@pytest.fixture(scope="session")
def spark(tmp_path_factory):
    """A session on a local cluster of two executors."""
    if shutil.which("java") is None and "JAVA_HOME" not in os.environ:
        pytest.skip("Spark needs Java, and there is none on the path")
    pyspark = pytest.importorskip("pyspark", reason="Spark is an extra: dpoutlier[spark]")
    folder = tmp_path_factory.mktemp("spark")
    (folder / "log4j2.properties").write_text(QUIET, "utf-8")
    quiet = f"-Dlog4j2.configurationFile=file:{folder / 'log4j2.properties'}"
    path = os.pathsep.join([str(Path(dpoutlier.__file__).parents[1]), str(Path(__file__).parent)])
    given = {
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "PYTHONPATH": path,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(folder),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_PREPEND_CLASSES": "",
    }
    before = {name: os.environ.get(name) for name in given}
    os.environ.update({name: value for name, value in given.items() if value})
    settings = {
        **SETTINGS,
        "spark.executorEnv.PYTHONPATH": path,
        "spark.driver.extraJavaOptions": quiet,
        "spark.executor.extraJavaOptions": quiet,
        "spark.sql.warehouse.dir": str(folder / "warehouse"),
    }
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what Spark itself uses is not ours to mend
            builder = pyspark.sql.SparkSession.builder.master("local-cluster[2,1,1024]").appName("dpoutlier tests")
            session = builder.config(map=settings).getOrCreate()
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    yield session
    session.stop()
    shutdown = getattr(pyspark.SparkContext._gateway, "shutdown", None)
    process = getattr(pyspark.SparkContext._gateway, "proc", None)
    if shutdown is not None:
        shutdown()
    if process is not None:
        process.stdin.close()
        process.wait(timeout=60)
