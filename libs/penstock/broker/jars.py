"""Downloads the jars of locked lists. A list (`jars.lock`) contains Maven coordinates and SHA-256 digests. Maven
downloads each jar once, into a cache outside of the checkout.

The user's settings for Maven define the repositories. A list contains all necessary jars, including transitive
dependencies. Maven therefore resolves no dependencies.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from hashlib import file_digest
from importlib.resources import files
from pathlib import Path

from penstock.errors import StorageError

_FETCH_S = 600


@dataclass(frozen=True, slots=True)
class Jar:
    """An artefact and the expected digest of its file."""

    group: str
    artifact: str
    version: str
    sha256: str

    @property
    def file_name(self) -> str:
        """The file name in Maven's form, for example `kafka-clients-4.0.0.jar`."""
        return f"{self.artifact}-{self.version}.jar"

    def is_in(self, directory: Path) -> bool:
        """Return whether the directory contains the file with the expected digest."""
        path = directory / self.file_name
        if not path.is_file():
            return False
        with path.open("rb") as file:
            return file_digest(file, "sha256").hexdigest() == self.sha256


def locked(package: str = "penstock.broker") -> list[Jar]:
    """Return the jars in the file `jars.lock` of a package, with their checksums. The default package is the package of
    the broker.
    """
    lines = files(package).joinpath("jars.lock").read_text().split("\n")
    return [_parsed(line) for line in lines if line.strip()]


def _parsed(line: str) -> Jar:
    coordinates, sha256 = line.split()
    group, artifact, version = coordinates.split(":")
    return Jar(group, artifact, version, sha256)


def kafka_jars() -> Path:
    """Return a directory with Kafka's jars. Downloads the jars if necessary.

    If PENSTOCK_KAFKA_LIBS names an existing directory (the libs/ of a Kafka 4 distribution), this directory is used
    unchanged. StorageError if the jars are unavailable or do not match the lock.
    """
    given = os.environ.get("PENSTOCK_KAFKA_LIBS")
    if given:
        return Path(given)
    jars = locked()
    return fetched(jars, _kafka_directory(jars).name)


def kafka_jars_here() -> bool:
    """Return whether all of Kafka's jars are on this machine, so that `kafka_jars` downloads nothing."""
    return bool(os.environ.get("PENSTOCK_KAFKA_LIBS")) or _complete(locked(), _kafka_directory(locked()))


def _kafka_directory(jars: list[Jar]) -> Path:
    version = next(jar.version for jar in jars if jar.artifact == "kafka-clients")
    return _cache() / f"kafka-{version}"


def _complete(jars: list[Jar], directory: Path) -> bool:
    stamp = directory / ".checked"
    return stamp.is_file() and stamp.read_text() == _contents(jars)


def _contents(jars: list[Jar]) -> str:
    return "\n".join(f"{jar.file_name} {jar.sha256}" for jar in jars)


def fetched(jars: list[Jar], name: str) -> Path:
    """Return a directory with jars. Downloads all jars, unless an earlier call has already downloaded them. `name`: the
    name of the directory in the cache.

    StorageError if the jars are unavailable or do not match the lock.
    """
    directory = _cache() / name
    if not _complete(jars, directory):
        _fetch(jars, directory)
        (directory / ".checked").write_text(_contents(jars))
    return directory


def _cache() -> Path:
    base = os.environ.get("PENSTOCK_CACHE") or os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "penstock"


def _fetch(jars: list[Jar], directory: Path) -> None:
    maven = shutil.which("mvn")
    if maven is None:
        raise StorageError(
            f"the jars of {directory.name} are missing and Maven (mvn) is not installed: install it, or set "
            "PENSTOCK_KAFKA_LIBS (libs of a Kafka 4 distribution) or PENSTOCK_SPARK_KAFKA_JARS (Spark's connector)"
        )
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent) as scratch:
        pom = Path(scratch, "pom.xml")
        pom.write_text(_pom(jars))
        files_there = Path(scratch, "jars")
        command = [
            maven,
            "-B",
            "-q",
            "-f",
            str(pom),
            "dependency:copy-dependencies",
            f"-DoutputDirectory={files_there}",
        ]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_FETCH_S, check=False)
        if done.returncode != 0:
            raise StorageError(
                f"Maven could not download the jars of {directory.name}: {(done.stdout + done.stderr).strip()[-2000:]}"
            )
        wrong = [jar.file_name for jar in jars if not jar.is_in(files_there)]
        if wrong:
            raise StorageError(f"downloaded files do not have the locked digest: {', '.join(wrong)}")
        # Concurrent downloads are safe: each download replaces whole files by identical files.
        directory.mkdir(exist_ok=True)
        for jar in jars:
            (files_there / jar.file_name).replace(directory / jar.file_name)


def _pom(jars: list[Jar]) -> str:
    dependencies = "".join(
        f"<dependency><groupId>{jar.group}</groupId><artifactId>{jar.artifact}</artifactId>"
        f"<version>{jar.version}</version><exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId>"
        "</exclusion></exclusions></dependency>\n"
        for jar in jars
    )
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>penstock</groupId><artifactId>broker</artifactId><version>1</version><packaging>pom</packaging>"
        f"<dependencies>\n{dependencies}</dependencies></project>\n"
    )
