"""The lines of the README that produce an event and consume the results of an installed release."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import time
from typing import TYPE_CHECKING

from tools.kubernetes.cluster import FULL_NAME, NAMESPACE, ROOT, StepError, command, environment

if TYPE_CHECKING:
    from collections.abc import Iterator

_LIMIT_S = 60.0


def lines() -> tuple[str, str, str]:
    """Return the lines that install, produce and consume."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    found = re.search(r"## As a cluster on Kubernetes\n+```\n(.*?)\n```", text, re.DOTALL)
    assert found is not None
    install, produce, consume = found[1].splitlines()
    return install, produce, consume


def produced_and_consumed() -> str:
    """Run the two lines, and wait until an answer counts the event."""
    _, produce, consume = map(_here, lines())
    done = subprocess.run(
        ["bash", "-c", produce], capture_output=True, text=True, timeout=_LIMIT_S, check=False, env=environment()
    )
    if done.returncode != 0:
        raise StepError(f"{produce}: {done.stderr.strip()}")
    line = ["timeout", f"{_LIMIT_S:.0f}", "bash", "-c", f"exec {consume}"]
    began = time.monotonic()
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment()) as consumer:
        try:
            for time_ms, rows in _answers(consumer):
                if rows:
                    return f"{json.dumps(rows)} at {time_ms}, after {time.monotonic() - began:.0f} s"
        finally:
            consumer.terminate()
    raise StepError(f"no answer of `rooms` has a row within {_LIMIT_S:g} s")


def _here(line: str) -> str:
    """A line of the README for the release and namespace of the test."""
    kubectl = shlex.join(command("kubectl", "-n", NAMESPACE))
    return line.replace("kubectl", kubectl).replace("penstock-kafka-0", f"{FULL_NAME}-kafka-0")


def _answers(consumer: subprocess.Popen[str]) -> Iterator[tuple[int, list[dict[str, str]]]]:
    assert consumer.stdout is not None
    for line in consumer.stdout:
        evaluation = json.loads(line)
        if evaluation["query"] == "rooms" and "results" in evaluation:
            bindings = evaluation["results"]["bindings"]
            yield evaluation["time"], [{name: each["value"] for name, each in row.items()} for row in bindings]
