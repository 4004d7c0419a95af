"""File access on any Hadoop file system through the session's JVM, for the driver."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from penstock.errors import DataError, StorageError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

_GLOB = frozenset("{}[]*?\\")
_NEW, _OLD = ".new", ".old"


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file, with its full address as Spark writes it, its size in bytes, and its modification time."""

    uri: str
    size: int
    modified_ms: int

    @property
    def name(self) -> str:
        """The last segment of the path, decoded."""
        return unquote(self.uri.rsplit("/", 1)[1])


class HadoopFiles:
    """File access. Paths are plain strings, not encoded. Paths without a scheme refer to the default file system."""

    def __init__(self, spark: SparkSession) -> None:
        jvm: Any = spark.sparkContext._jvm  # noqa: SLF001 - PySpark has no public way to Hadoop's API
        self._fs = jvm.org.apache.hadoop.fs
        self._java = jvm.java
        self._conf = spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001

    def matching(self, pattern: str) -> list[FileStatus]:
        """Return the files of a path, glob or folder (without subfolders), sorted by address.

        DataError if there are no files. As in Hadoop, files in a folder are ignored if their names start with `.` or
        `_`.
        """
        with _naming(pattern):
            path, system = self._resolve(pattern)
            found = [system.getFileStatus(path)] if system.exists(path) else list(system.globStatus(path) or ())
            files = [inner for status in found for inner in self._files(system, status)]
        if not files:
            raise DataError(f"{pattern}: no such file")
        return sorted(files, key=lambda file: file.uri)

    def _files(self, system: Any, status: Any) -> list[FileStatus]:
        inner = system.listStatus(status.getPath()) if status.isDirectory() else [status]
        return [
            FileStatus(_uri(file), file.getLen(), file.getModificationTime())
            for file in inner
            if file.isFile() and (not status.isDirectory() or not file.getPath().getName().startswith((".", "_")))
        ]

    def all_files(self, folder: str) -> list[FileStatus]:
        """Return the files below a folder, sorted by address. Files whose names start with `.` or `_` are omitted. The
        list is empty if the folder does not exist.
        """
        with _naming(folder):
            path, system = self._resolve(folder)
            files = []
            if system.exists(path):
                listed = system.listFiles(path, True)
                while listed.hasNext():
                    file = listed.next()
                    if not file.getPath().getName().startswith((".", "_")):
                        files.append(FileStatus(_uri(file), file.getLen(), file.getModificationTime()))
        return sorted(files, key=lambda file: file.uri)

    def folders(self, name: str) -> list[str]:
        """Return the names of a folder's subfolders. The list is empty if the folder does not exist."""
        with _naming(name):
            path, system = self._resolve(name)
            listed = system.listStatus(path) if system.exists(path) else ()
            return sorted(status.getPath().getName() for status in listed if status.isDirectory())

    def delete(self, name: str) -> None:
        """Delete a file, or a folder with its content. No effect if the file or folder does not exist."""
        with _naming(name):
            path, system = self._resolve(name)
            system.delete(path, True)

    def read_state(self, name: str) -> bytes | None:
        """Return the last content that `write_state` has written. None if there is no content."""
        with _naming(name):
            path, system = self._resolve(name)
            for found in (path, self._fs.Path(name + _OLD)):
                if system.exists(found):
                    stream = system.open(found)
                    try:
                        return bytes(stream.readAllBytes())
                    finally:
                        stream.close()
        return None

    def write_state(self, name: str, data: bytes) -> None:
        """Write a small file, or replace an existing file. Only one process is allowed to call this method.

        After a crash, `read_state` returns either the old or the new content. On some file systems, Hadoop cannot
        rename a file over an existing one. The old content therefore has another name until the new content is in its
        place.
        """
        with _naming(name):
            path, system = self._resolve(name)
            new, old = self._fs.Path(name + _NEW), self._fs.Path(name + _OLD)
            stream = system.create(new, True)
            try:
                stream.write(data)
            finally:
                stream.close()
            if system.exists(path):
                system.delete(old, False)
                _moved(system, path, old)
            _moved(system, new, path)
            system.delete(old, False)

    def put(self, local: Path, name: str) -> None:
        """Copy a local file to `name`."""
        with _naming(name):
            path, system = self._resolve(name)
            system.copyFromLocalFile(False, True, self._fs.Path(f"file://{local.absolute()}"), path)

    @contextmanager
    def local(self, uri: str, scratch: Path) -> Iterator[Path]:
        """Yield a local path for a file. The path is that of the file itself, or that of a temporary copy in `scratch`.
        `uri`: the `FileStatus.uri` of the file.
        """
        split = urlsplit(uri)
        if split.scheme == "file":
            yield Path(unquote(split.path))
            return
        copy = scratch / split.path.rsplit("/", 1)[1]
        try:
            with _naming(uri):
                path = self._fs.Path(self._java.net.URI(uri))
                system = path.getFileSystem(self._conf)
                system.copyToLocalFile(False, path, self._fs.Path(f"file://{copy.absolute()}"), True)
            yield copy
        finally:
            copy.unlink(missing_ok=True)

    def _resolve(self, name: str) -> tuple[Any, Any]:
        path = self._fs.Path(name)
        return path, path.getFileSystem(self._conf)


def _uri(status: Any) -> str:
    """Return a file's canonical address. (Hadoop uses both `file:/` and `file:///` for local files.)"""
    uri: str = status.getPath().toUri().toString()
    return f"file://{uri.removeprefix('file:')}" if uri.startswith("file:/") and uri[6:7] != "/" else uri


def escaped(path: str) -> str:
    """Return a path with escapes for Spark's readers, because the readers interpret some characters as patterns."""
    return "".join(f"\\{c}" if c in _GLOB else c for c in path)


def literal(uri: str) -> str:
    """Return a file's address (as in `FileStatus`) with escaped pattern characters, so that Spark's readers take the
    address literally.
    """
    split = urlsplit(uri)
    return f"{split.scheme}://{split.netloc}{escaped(unquote(split.path))}"


@contextmanager
def _naming(name: str) -> Iterator[None]:
    """Replace an error of the JVM in the `with` block by a StorageError with the name of the file."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415 - comes with pyspark
    from pyspark.errors import PySparkException  # noqa: PLC0415 - PySpark converts some of them

    try:
        yield
    except Py4JJavaError as error:
        message = error.java_exception.getMessage() or str(error.java_exception)
        raise StorageError(f"{name}: {message}{_missing(message)}") from error
    except PySparkException as error:
        raise StorageError(f"{name}: {error.getMessage() or error}") from error


def _missing(message: str) -> str:
    """Return a hint if Hadoop lacks the code for the scheme of an address. Spark's wheel has no code for cloud file
    systems.
    """
    if not message.startswith("No FileSystem for scheme") and "ClassNotFoundException" not in message:
        return ""
    return ": the jars of that file system are missing (add them with --conf spark.jars=...)"


def _moved(system: Any, source: Any, target: Any) -> None:
    """Rename a file. StorageError if the file system refuses the new name."""
    if not system.rename(source, target):
        raise StorageError(f"{target}: cannot be written")
