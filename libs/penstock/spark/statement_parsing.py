"""The stage `parse`, in Spark tasks. The stage parses text into statements in *local* ids, and collects the terms of
these ids.

Each task has its own dictionary, so that tasks exchange nothing during parsing. A task writes rows of four kinds
(`what`) to the staging table. `triples` rows have packed columns of local ids. `terms` rows have the terms of the local
ids. `bad` rows have invalid lines. `lines` rows have the number of lines in each split. From the numbers of lines, the
driver computes the line numbers of bad lines.

Blank nodes are terms, too. The name of a blank node contains its file, so that a label denotes the same node in all
splits of a file, and different nodes in different files.
"""

from __future__ import annotations

import io
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.errors import DataError
from penstock.rdf.formats import Format
from penstock.rdf.id_layout import PAYLOAD, TAG_BLANK, TAG_SHIFT
from penstock.rdf.parsing import Quads, parse_other
from penstock.spark.task import task_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from penstock.mapping.files.file_mapping import DataFormat

STAGED = pa.schema(
    [
        ("what", pa.string()),
        ("part", pa.int64()),  # task: its local ids
        ("s", pa.binary()),
        ("p", pa.binary()),
        ("o", pa.binary()),
        ("g", pa.binary()),
        ("slot", pa.int64()),  # local id
        ("kind", pa.int32()),
        ("lexical", pa.string()),
        ("datatype", pa.string()),
        ("lang", pa.string()),
        ("file", pa.int64()),
        ("start", pa.int64()),  # of the split, bytes
        ("line", pa.int64()),  # within the split; for kind `lines`: their number
        ("reason", pa.string()),
        ("text", pa.binary()),
    ]
)
STAGED_DDL = (
    "what string, part bigint, s binary, p binary, o binary, g binary, slot bigint, kind int, lexical string, "
    "datatype string, lang string, file bigint, start bigint, line bigint, reason string, text binary"
)
WHOLE_DOCUMENT = -1
"""Line number of an error that invalidates the whole document."""

TERMS_PER_BATCH, BYTES_PER_BATCH = 65_536, 16 << 20
"""Maximum size of a batch of terms between tasks."""


@dataclass(frozen=True, slots=True)
class ParseSettings:
    """Settings of the tasks: format and base IRI of each file (by number), default graph, maximum number of bad lines,
    and the number of the first task. The first task of a job need not be task 0, because a stage can have several jobs.
    `mapping`: settings of the mapping of data files.
    """

    files: Mapping[int, tuple[Format | DataFormat, str]]
    graph: str | None
    max_bad: int
    first_part: int = 0
    mapping: dict[str, Any] | None = None


def parse_lines(settings: ParseSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Parse rows (file, start, text) of N-Triples and N-Quads files. Each text is one line, including its line end."""
    part = StagedPart(settings)
    for file, start, text in pieces_of(batches):
        yield from part.lines(file, start, text)
    yield from part.ends()


def parse_documents(settings: ParseSettings, batches: Iterable[Any]) -> Iterator[Any]:
    """Parse rows (file, start, text) of formats that cannot be split. A file's rows are consecutive and in order."""
    part = StagedPart(settings)
    for file, pieces in groupby(pieces_of(batches), key=lambda piece: piece[0]):
        texts = (text for _, _, text in pieces)
        yield from part.document(file, texts)
        for _ in texts:  # Spark requires that a task consumes its input, even after an error
            pass
    yield from part.ends()


def pieces_of(batches: Iterable[Any]) -> Iterator[tuple[int, int, bytes]]:
    """Yield the texts of batches of rows (file, start, text). Consecutive rows of a split become one text."""
    for batch in batches:
        files, starts = (batch.column(i).to_numpy(zero_copy_only=False) for i in (0, 1))
        for first, end in co.runs(files, starts):
            yield int(files[first]), int(starts[first]), co.bytes_between(batch.column(2), first, end)


class StagedPart:
    """A task's dictionary and output."""

    def __init__(self, settings: ParseSettings) -> None:
        self.dictionary = native.Dictionary()
        self._number = settings.first_part + task_number()
        self._settings = settings
        graph = settings.graph
        self._graph = np.uint64(0 if graph is None else self.dictionary.intern(co.IRI, graph))
        self._scopes: dict[int, native.BlankScope] = {}
        self._lines: dict[tuple[int, int], int] = {}  # lines read so far, by split
        self._bad = 0

    @property
    def has_failed(self) -> bool:
        """Whether the task has found more bad lines than a load is allowed to have."""
        return self._bad > self._settings.max_bad

    def scope(self, file: int) -> native.BlankScope:
        """Return the blank nodes of a file."""
        return self._scopes.setdefault(file, native.BlankScope())

    def read(self, file: int, start: int, lines: int) -> int:
        """Add to the number of lines that were read from a split. Returns the number before the addition."""
        before = self._lines.get((file, start), 0)
        self._lines[file, start] = before + lines
        return before

    def lines(self, file: int, start: int, text: bytes) -> Iterator[Any]:
        """Yield the rows for the lines of a text, which belong to the split at `start`."""
        fmt, _ = self._settings.files[file]
        before = self.read(file, start, 0)
        if self.has_failed:
            return
        parsed = native.parse_nquads(
            self.dictionary,
            text,
            quads=fmt is Format.N_QUADS,
            strict=False,
            max_bad=self._settings.max_bad + 1,
            scope=self.scope(file),
            first_line=before + 1,
        )
        self.read(file, start, parsed.lines)
        if len(parsed.subjects):
            yield self.triples(Quads.of(parsed))
        yield from self.bad(file, start, parsed.bad, parsed.bad_count)

    def bad(self, file: int, start: int, bad: Sequence[tuple[int, bytes, str]], count: int) -> Iterator[Any]:
        """Yield a row for each bad line of a split, given as (line, bytes, reason). `count`: the number of bad lines in
        the split, which can be greater than the number of given lines.
        """
        self._bad += count
        if bad:
            lines, texts, reasons = zip(*bad, strict=True)
            n = len(lines)
            yield self._rows("bad", n, file=[file] * n, start=[start] * n, line=lines, text=texts, reason=reasons)

    def document(self, file: int, pieces: Iterator[bytes]) -> Iterator[Any]:
        """Yield the rows for a document in a format that cannot be split."""
        fmt, base = self._settings.files[file]
        assert isinstance(fmt, Format)
        try:
            for quads in parse_other(self.dictionary, stream_of(pieces), fmt, base, trusted=True):
                yield self.triples(quads)
        except DataError as error:
            yield from self.bad(file, 0, [(WHOLE_DOCUMENT, b"", str(error))], 1)

    def triples(self, quads: Quads) -> Any:
        """Return a row with statements."""
        graphs = np.where(quads.graphs == 0, self._graph, quads.graphs)
        s, p, o, g = ([co.packed(c)] for c in (quads.subjects, quads.predicates, quads.objects, graphs))
        return self._rows("triples", 1, s=s, p=p, o=o, g=g, line=[len(quads)])

    def ends(self) -> Iterator[Any]:
        """Yield the rows that are known only after all input, which are the `lines` rows and the `terms` rows."""
        if self._lines:
            files, starts = zip(*self._lines, strict=True)
            yield self._rows("lines", len(files), file=files, start=starts, line=list(self._lines.values()))
        slot = 1
        while slot < native.next_slot(self.dictionary):
            ids, kinds, lexicals, datatypes, langs, slot = native.dictionary_columns(
                self.dictionary, slot, TERMS_PER_BATCH, BYTES_PER_BATCH
            )
            yield self._terms(ids, kinds, *(co.strings(texts) for texts in (lexicals, datatypes, langs)))
        yield from self._blanks()

    def _blanks(self) -> Iterator[Any]:
        labelled = np.zeros(self.dictionary.blank_count(), bool)
        for file, scope in self._scopes.items():
            ids, labels = native.blank_labels(scope)
            labelled[ids & PAYLOAD] = True
            yield self._blank_terms(ids, f"{file & (1 << 64) - 1:x}", co.strings(labels))
        # one task parses a whole document, so a number identifies the node
        numbers = np.flatnonzero(~labelled).astype(np.uint64)
        names = pa.array(numbers).cast(pa.string())
        yield self._blank_terms(numbers | (TAG_BLANK << TAG_SHIFT), f"part{self._number}", names)

    def _blank_terms(self, ids: native.Ids, prefix: str, labels: Any) -> Any:
        empty = pa.array([""]).take(pa.array(np.zeros(len(ids), np.int32)))
        names = pc.binary_join_element_wise(prefix, labels, " ")
        return self._terms(ids, np.full(len(ids), co.BLANK), names, empty, empty)

    def _terms(self, ids: native.Ids, kinds: Any, lexicals: Any, datatypes: Any, langs: Any) -> Any:
        return self._rows(
            "terms",
            len(ids),
            slot=co.longs(ids),
            kind=pa.array(kinds, pa.int32()),
            lexical=lexicals,
            datatype=datatypes,
            lang=langs,
        )

    def _rows(self, what: str, n: int, **given: Any) -> Any:
        """Return a batch of the staging table. Missing columns are null."""
        given |= {"what": [what] * n, "part": [self._number] * n}
        arrays = [
            pa.nulls(n, field.type) if field.name not in given else pa.array(given[field.name], field.type)
            for field in STAGED
        ]
        return pa.RecordBatch.from_arrays(arrays, schema=STAGED)


def stream_of(pieces: Iterator[bytes]) -> io.BufferedReader:
    """Return a stream of the bytes of a document's pieces."""
    return io.BufferedReader(_Reader(pieces))


class _Reader(io.RawIOBase):
    """A file-like view of a document's pieces."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = memoryview(next((piece for piece in self._pieces if piece), b""))
        n = min(len(buffer), len(self._rest))
        buffer[:n] = self._rest[:n]
        self._rest = self._rest[n:]
        return n
