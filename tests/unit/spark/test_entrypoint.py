"""The entry point of Spark's pods: executors as Spark on Kubernetes asks for them, everything else as it is."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

SCRIPT = Path(__file__).parents[3] / "tools" / "spark_entrypoint.sh"
ASKED = {
    "SPARK_HOME": "/opt/spark",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.7",
    "SPARK_EXECUTOR_POD_NAME": "exec-3",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    **{f"SPARK_JAVA_OPT_{i}": f"-Dnumber={i} of 11" for i in range(11)},
}


def run(folder, *arguments):
    java = folder / "java"
    java.write_text('#!/bin/sh\nfor a do echo "$a"; done\n')
    java.chmod(0o755)
    inherited = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [SCRIPT, *arguments],
        env=inherited | ASKED | {"PATH": path},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout.splitlines()


def test_an_executor_is_started_as_the_variables_say(tmp_path):
    reported = run(tmp_path, "executor")
    assert reported[:11] == [f"-Dnumber={i} of 11" for i in range(11)]
    assert reported[11:16] == [
        "-Xms1024m",
        "-Xmx1024m",
        "-cp",
        "/opt/spark/conf:/opt/spark/jars/*",
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    ]
    rest = dict(zip(reported[16::2], reported[17::2], strict=True))
    assert rest["--driver-url"] == ASKED["SPARK_DRIVER_URL"]
    assert (rest["--executor-id"], rest["--cores"], rest["--hostname"]) == ("3", "2", "10.0.0.7")
    assert rest["--podName"] == "exec-3"


def test_everything_else_is_run_as_it_is(tmp_path):
    assert run(tmp_path, "echo", "a b", "c") == ["a b c"]
