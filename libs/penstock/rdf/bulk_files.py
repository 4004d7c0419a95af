"""Bulk reading of RDF files into columns of term ids, in parts of bounded size."""

from __future__ import annotations

import gzip
import io
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from penstock.core._native import BlankScope, parse_nquads
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.rdf.parsing import Quads, parse_other

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from penstock.core._native import Dictionary

CHUNK_BYTES = 8 << 20
MAX_LINE_BYTES = 80 << 20
"""Maximum length of a line in an N-Triples or N-Quads file. Four terms of the maximum size, with punctuation, fit into
a line.
"""


@dataclass(frozen=True, slots=True)
class Source:
    """The input of a load: a file path or bytes. `name` identifies the input in error messages."""

    path: Path | None
    data: bytes | None
    name: str
    format: Format
    base: str | None

    @classmethod
    def of(cls, source: str | os.PathLike[str] | bytes, format: str | None = None, base: str | None = None) -> Source:  # noqa: A002
        """Create a source. By default, the file name determines the format, and the location of the file determines the
        base IRI.
        """
        if isinstance(source, bytes):
            if format is None:
                raise DataError("bytes need a format=…")
            return cls(None, source, "<bytes>", Format.named(format), base)
        path = Path(source)
        fmt = Format.of_path(path) if format is None else Format.named(format)
        return cls(path, None, str(path), fmt, base or path.absolute().as_uri())

    @property
    def total_bytes(self) -> int:
        """Size in bytes of the file on disk (compressed for `.gz`), or of the given bytes."""
        if self.data is not None:
            return len(self.data)
        assert self.path is not None
        return self.path.stat().st_size


def read(
    dictionary: Dictionary,
    source: Source,
    *,
    keep: bool = True,
    progress: Callable[[int, int], None] | None = None,
    chunk_bytes: int = CHUNK_BYTES,
) -> Iterator[Quads]:
    """Yield a document's statements in parts. Blank node labels are scoped to the document.

    Before each part, `progress` receives two numbers: the bytes read so far, and the bytes in total. For `.gz`, both
    numbers count compressed bytes.

    An error can occur after some parts were yielded. The terms of these parts stay in the dictionary, and the caller
    decides whether to commit these parts. DataError "file: reason" for invalid input. The reason of a syntax error
    begins with line and column. OSError if the file cannot be read.
    """
    with ExitStack() as stack:
        stack.enter_context(naming(source.name))
        raw: IO[bytes] = io.BytesIO(source.data) if source.data is not None else stack.enter_context(_open(source))
        compressed = source.path is not None and source.path.suffix.lower() == ".gz"
        file: IO[bytes] = cast("IO[bytes]", gzip.GzipFile(fileobj=raw)) if compressed else raw
        if source.format.is_native:
            parts = _read_lines(
                dictionary, file, quads=source.format is Format.N_QUADS, keep=keep, chunk_bytes=chunk_bytes
            )
        else:
            trusted = source.path is not None
            parts = parse_other(dictionary, file, source.format, source.base, keep=keep, trusted=trusted)
        for part in parts:
            if progress is not None:
                progress(raw.tell(), source.total_bytes)
            yield part


def _open(source: Source) -> IO[bytes]:
    assert source.path is not None
    return source.path.open("rb")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Prefix DataError messages with the input's name."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    except (gzip.BadGzipFile, EOFError) as error:
        raise DataError(f"{name}: damaged gzip data: {error}") from error


def _read_lines(
    dictionary: Dictionary, file: IO[bytes], *, quads: bool, keep: bool, chunk_bytes: int
) -> Iterator[Quads]:
    scope = BlankScope()
    line = 1
    for chunk in whole_lines(file, chunk_bytes):
        parsed = parse_nquads(dictionary, chunk, quads=quads, scope=scope, keep=keep, first_line=line)
        line += parsed.lines
        if len(parsed.subjects) > 0:
            yield Quads.of(parsed)


def whole_lines(file: IO[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Yield pieces of about `chunk_bytes`. Each piece ends with a line feed, except possibly the last piece. DataError
    for a line that is longer than MAX_LINE_BYTES.
    """
    rest = b""
    while block := file.read(chunk_bytes):
        head, feed, tail = block.rpartition(b"\n")
        if feed:
            yield rest + head + feed
            rest = tail
        else:
            rest += block
        if len(rest) > MAX_LINE_BYTES:
            raise DataError(f"a line longer than {MAX_LINE_BYTES} bytes")
    if rest:
        yield rest
