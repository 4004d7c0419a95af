"""The images of the test: the services, the services with a change, Spark, and a Kafka broker from the locked jars.

For a Kubernetes of one node, its script builds and loads them. For an existing cluster, CONTAINER_TOOL builds them (by
default docker, podman or buildah, CONTAINER_BUILD: options), and the nodes get them from IMAGE_REGISTRY, or by
IMAGE_LOAD, a command that imports an archive.
"""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from pathlib import Path

from penstock.broker import kafka_jars
from penstock.spark.session import connector_jars
from tools.kubernetes.cluster import ROOT, StepError, existing, kube, run

_REGISTRY = os.environ.get("IMAGE_REGISTRY") or "localhost"
SERVICES, CHANGED = f"{_REGISTRY}/penstock:first", f"{_REGISTRY}/penstock:second"
BROKER, SPARK = f"{_REGISTRY}/kafka:test", f"{_REGISTRY}/penstock-spark:test"
_HOST_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")  # so that pip works as on this machine
_BUILD_S = 3000.0
_BROKER = """\
ARG BASE_IMAGE
FROM ${BASE_IMAGE}
RUN apt-get update \\
    && apt-get install -y --no-install-recommends kcat default-jre-headless \\
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
    base = os.environ.get("PENSTOCK_IMAGE")  # an image that is there already
    if base is None:
        _build(SERVICES, ROOT, *_mounts())
    else:
        _derive(SERVICES, f"FROM {base}\n")
    _derive(CHANGED, f"FROM {SERVICES}\nENV PENSTOCK_TEST_CHANGE=1\n")
    if spark := os.environ.get("PENSTOCK_SPARK_IMAGE"):  # an image that is there already
        _derive(SPARK, f"FROM {spark}\n")
    else:
        file, base = ROOT / "Dockerfile.spark", f"BASE_IMAGE={SERVICES}"
        _build(SPARK, ROOT, "-f", str(file), "--build-arg", base, *_mounts(), *_connector())
    if not broker_is_given():
        _build_broker()


def values(name: str) -> dict[str, str]:
    """Return the chart's values of an image."""
    path, tag = name.rsplit(":", 1)
    registry, repository = path.split("/", 1)
    return {"registry": registry, "repository": repository, "tag": tag}


def broker_is_given() -> bool:
    """Return whether the broker's image is that of the chart's values, as on a cluster that can pull it."""
    return existing() and "PENSTOCK_BROKER_IMAGE" not in os.environ


def _build_broker() -> None:
    if given := os.environ.get("PENSTOCK_BROKER_IMAGE"):
        _derive(BROKER, f"FROM {given}\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(kafka_jars(), Path(folder, "libs"))
        scripts = Path(folder, "bin")
        scripts.mkdir()
        for name, text in _SCRIPTS.items():
            file = scripts / name
            file.write_text(f"#!/bin/bash\n{text}")
            file.chmod(0o755)
        Path(folder, "Dockerfile").write_text(_BROKER)
        _build(BROKER, Path(folder))


def _mounts() -> list[str]:
    if existing():
        return []  # CONTAINER_BUILD has the options that are needed there
    return [part for file in _HOST_FILES if Path(file).exists() for part in ("-v", f"{file}:{file}:ro")]


def _connector() -> list[str]:
    """Return the mount of Spark's Kafka connector, so that the image needs no Maven repository."""
    if existing():
        return []
    folder = connector_jars()[0].parent
    return ["-v", f"{folder}:/cache/penstock/{folder.name}:ro"]


def _derive(name: str, dockerfile: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "Dockerfile").write_text(dockerfile)
        _build(name, Path(folder))


def _build(name: str, context: Path, *options: str) -> None:
    if not existing():
        kube("image", name, context, *options, limit_s=_BUILD_S)
        return
    tool = _tool()
    extra = shlex.split(os.environ.get("CONTAINER_BUILD", ""))
    run([*tool, "build", *extra, *options, "-t", name, str(context)], _BUILD_S)
    if load := os.environ.get("IMAGE_LOAD"):
        with tempfile.TemporaryDirectory() as folder:
            archive = f"{folder}/image.tar"
            saving = ["save", "-o", archive, name]
            if Path(tool[0]).name == "buildah":
                saving = ["push", name, f"docker-archive:{archive}:{name}"]
            run([*tool, *saving], _BUILD_S)
            run([*shlex.split(load), archive], _BUILD_S)
    elif "IMAGE_REGISTRY" in os.environ:
        run([*tool, "push", name], _BUILD_S)
    else:
        raise StepError("IMAGE_REGISTRY or IMAGE_LOAD must say how the nodes get images")


def _tool() -> list[str]:
    if given := os.environ.get("CONTAINER_TOOL"):
        return shlex.split(given)
    for name in ("docker", "podman", "buildah"):
        if shutil.which(name):
            return [name]
    raise StepError("neither docker nor podman nor buildah is here (CONTAINER_TOOL names another one)")
