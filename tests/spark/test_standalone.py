"""A bulk load by spark-submit on a standalone master and worker, to which the package is shipped as an archive."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest

import penstock

pyspark = pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

ROOT = Path(__file__).parents[2]
BOUND_S = 600.0
TRIPLES = 20_000
PARSER = "statement_parsing"  # a module that only workers import
_MASTER = re.compile(r"Starting Spark master at (spark://\S+)")


@pytest.fixture
def environment():
    own = {
        "SPARK_HOME": str(Path(pyspark.__file__).parent),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
    }
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return inherited | own


@pytest.fixture
def master(tmp_path, environment):
    """The address of a master with one worker, whose folder is `work`."""
    started = []

    def start(name, kind, *arguments):
        command = [f"{environment['SPARK_HOME']}/bin/spark-class", f"org.apache.spark.deploy.{kind}", *arguments]
        with (tmp_path / name).open("wb") as log:
            bare = {name: value for name, value in environment.items() if name != "PYTHONPATH"}
            started.append(subprocess.Popen(command, stdout=log, stderr=log, env=bare))

    def logged(name, pattern):
        deadline = time.monotonic() + BOUND_S
        while (found := re.search(pattern, (tmp_path / name).read_text())) is None:
            assert time.monotonic() < deadline, (tmp_path / name).read_text()
            time.sleep(0.1)
        return found

    local = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    try:
        start("master", "master.Master", *local)
        address = logged("master", _MASTER)[1]
        start("worker", "worker.Worker", *local, "-c", "2", "-m", "1g", "-d", str(tmp_path / "work"), address)
        logged("worker", "Successfully registered with master")
        yield address
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait(60)


def archive(path):
    """The package as docs/spark.md says to ship it."""
    with tarfile.open(path, "w:gz", dereference=True) as packed:
        folder = Path(penstock.__file__).parent
        packed.add(folder, "penstock", filter=lambda entry: None if entry.name.endswith("__pycache__") else entry)
    return path


def test_a_load_on_a_worker_that_has_the_package_from_an_archive(tmp_path, master, environment):
    file = tmp_path / "a.nt"
    file.write_text("".join(f'<http://s/{i}> <http://p/{i % 5}> "value number {i}" .\n' for i in range(TRIPLES)))
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": "768m",
        "spark.executorEnv.PYTHONPATH": "penstock-package",
        "spark.ui.enabled": "false",
    }
    submit = [f"{environment['SPARK_HOME']}/bin/spark-submit", "--master", master]
    submit += ["--archives", f"{archive(tmp_path / 'penstock.tar.gz')}#penstock-package"]
    submit += [part for pair in settings.items() for part in ("--conf", "=".join(pair))]
    with (tmp_path / "submit").open("w+") as log:
        done = subprocess.run(
            [*submit, str(ROOT / "tools/spark_submit/bulk_load.py"), "--data-dir", str(tmp_path / "data"), str(file)],
            stdout=subprocess.PIPE, stderr=log, text=True, timeout=1_200, check=False, env=environment,
        )  # fmt: skip
    assert done.returncode == 0, (tmp_path / "submit").read_text()[-4_000:]
    *_, last = done.stdout.splitlines()  # spark-submit joins both outputs of a driver
    assert last.startswith(f"{TRIPLES:,} triples")
    assert (Path(penstock.__file__).parent / "spark" / f"{PARSER}.py").is_file()
    compiled = (tmp_path / "work").glob(f"*/*/penstock-package/penstock/spark/__pycache__/{PARSER}.*")
    assert list(compiled), "the worker took the package from elsewhere"
    with penstock.Engine(data_dir=tmp_path / "data", read_only=True) as engine:
        (row,) = engine.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
        assert int(row["n"]) == TRIPLES
