"""The images of the test: the services, the services with a change, and a Kafka broker from the locked jars."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from penstock.broker import kafka_jars
from tools.kubernetes.cluster import ROOT, kube

SERVICES, CHANGED, BROKER = "localhost/penstock:first", "localhost/penstock:second", "localhost/kafka:test"
_HOST_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")  # so that pip works as on this machine
_BUILD_S = 3000.0
_BROKER = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends kcat openjdk-17-jre-headless \\
    && rm -rf /var/lib/apt/lists/*
COPY libs /opt/kafka/libs
COPY bin /opt/kafka/bin
USER 10001
"""
_SCRIPTS = {
    "kafka-storage.sh": "exec java -cp '/opt/kafka/libs/*' kafka.tools.StorageTool \"$@\"\n",
    "kafka-server-start.sh": "exec java ${KAFKA_HEAP_OPTS:-} -cp '/opt/kafka/libs/*' kafka.Kafka \"$@\"\n",
    # In place of Kafka's, whose jars are not in the locked list: with the README's options.
    "kafka-console-producer.sh": 'exec kcat -P -b "$2" -t "$4"\n',
    "kafka-console-consumer.sh": 'exec kcat -C -u -q -o beginning -X isolation.level=read_committed -b "$2" -t "$4"\n',
}


def build() -> None:
    """Build the images and load them into the cluster. Unchanged layers are not built again."""
    mounts = [part for file in _HOST_FILES if os.path.exists(file) for part in ("-v", f"{file}:{file}:ro")]  # noqa: PTH110
    base = os.environ.get("PENSTOCK_IMAGE")  # an image that is there already
    if base is None:
        kube("image", SERVICES, ROOT, *mounts, limit_s=_BUILD_S)
    else:
        _build(SERVICES, f"FROM {base}\n")
    _build(CHANGED, f"FROM {SERVICES}\nENV PENSTOCK_TEST_CHANGE=1\n")
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kafka_jars(), Path(folder, "libs"))
        scripts = Path(folder, "bin")
        scripts.mkdir()
        for name, text in _SCRIPTS.items():
            file = scripts / name
            file.write_text(f"#!/bin/bash\n{text}")
            file.chmod(0o755)
        Path(folder, "Dockerfile").write_text(_BROKER)
        kube("image", BROKER, folder, limit_s=_BUILD_S)


def _build(name: str, dockerfile: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text(dockerfile)
        kube("image", name, folder, limit_s=_BUILD_S)
