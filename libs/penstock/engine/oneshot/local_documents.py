"""Reads the files of LOAD. All files must be below one directory (`load_directory` of the engine). An IRI with a scheme
other than `file` is an error.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from penstock.engine.intake.graph_change import GraphChange
from penstock.engine.intake.graph_loading import Document
from penstock.errors import DataError

if TYPE_CHECKING:
    from os import PathLike

    from penstock.engine.engine_core import EngineCore
    from penstock.query.ir import LoadDocument


def checked_directory(directory: str | PathLike[str] | None) -> Path | None:
    """Return the path of the directory with symbolic links resolved. DataError if the path is not a directory."""
    if directory is None:
        return None
    found = Path(directory).resolve()
    if not found.is_dir():
        raise DataError(f"load_directory: {directory} is not a directory")
    return found


def document_change(core: EngineCore, operation: LoadDocument, directory: Path, most: int | None = None) -> GraphChange:
    """Return the change that a LOAD makes. DataError if the document is invalid, cannot be read, or is not a file below
    `directory`. LimitError if the document has more than `most` statements. The caller must hold a lease on the
    dictionary.
    """
    graph = None if operation.graph is None else operation.graph.value
    path = _path_of(operation.source.value, directory)
    try:
        return GraphChange(added=Document.read(core, path, graph, None, path.as_uri(), most=most).columns)
    except DataError as error:
        raise DataError(str(error).replace(str(path), str(path.relative_to(directory)))) from error


def _path_of(iri: str, directory: Path) -> Path:
    """Return the path of the file that an IRI names. The IRI is `file:NAME`, with a name relative to `directory`, or
    `file:///PATH`, with a path below `directory`. DataError for any other file. The error does not reveal whether the
    file exists.
    """
    parts = urlsplit(iri)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost") or parts.query or parts.fragment:
        raise DataError(f"LOAD reads files only: <file:NAME> in load_directory, not <{iri}>")
    name = unquote(parts.path)
    if "\0" not in name:
        path = (directory / name).resolve()
        if path.is_relative_to(directory) and path.is_file():
            return path
    raise DataError(f"LOAD: there is no file <{iri}> in load_directory")
