"""The stage `terms`, in Spark tasks. The stage finds the distinct terms and numbers the new terms.

Terms, including the terms of the existing dictionary, are partitioned by lexical form, so that one task receives all
occurrences of a term. A task numbers its new terms from 0. An offset per task makes these numbers unique, but the
offsets are known only when all tasks are done. The output therefore contains *codes*. A code is a known id, or (new,
kind of id, task, number). There are three kinds of rows (column `what`). A `map` row has local ids of a part and their
codes, packed. A `new` row has a new term. A `count` row has the number of new terms.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from penstock.core import _native as native
from penstock.core import arrow as co
from penstock.engine.intake.bulk_intake import KNOWN_PART
from penstock.rdf.id_layout import PAYLOAD, TAG_BLANK, TAG_SHIFT
from penstock.spark.statement_parsing import BYTES_PER_BATCH, TERMS_PER_BATCH
from penstock.spark.task import patiently, task_number
from penstock.term_ids.flight_terms import FlightTerms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    from penstock.core._native import Ids
    from penstock.term_ids.peer_certificates import PeerCertificates

NUMBERED = pa.schema(
    [
        ("what", pa.string()),
        ("part", pa.int64()),
        ("slots", pa.binary()),
        ("codes", pa.binary()),
        ("code", pa.int64()),
        ("kind", pa.int32()),
        ("lexical", pa.string()),
        ("datatype", pa.string()),
        ("lang", pa.string()),
        ("task", pa.int32()),
        ("entries", pa.int64()),
        ("blanks", pa.int64()),
    ]
)
NUMBERED_DDL = (
    "what string, part bigint, slots binary, codes binary, code bigint, kind int, lexical string, datatype string, "
    "lang string, task int, entries bigint, blanks bigint"
)
_NEW = np.uint64(1 << 63)
_TASK_SHIFT = np.uint64(32)
_TASK = np.uint64((1 << 20) - 1)
_NUMBER = np.uint64((1 << 32) - 1)
_TAG = np.uint64(7)
_TERMS_PER_REQUEST = 8_192


def ids_of_codes(codes: Ids, first_entries: Ids, first_blanks: Ids) -> Ids:
    """Return the ids for codes. `first_entries`: for each task, the number of its first new dictionary entry.
    `first_blanks`: for each task, the number of its first new blank node.
    """
    new = (codes & _NEW) != 0
    task = ((codes >> _TASK_SHIFT) & _TASK).astype(np.int64)
    tag = (codes >> TAG_SHIFT) & _TAG
    task[~new] = 0
    first = np.where(tag == TAG_BLANK, first_blanks[task], first_entries[task])
    return np.where(new, (tag << TAG_SHIFT) | (first + (codes & _NUMBER)), codes)


def number_terms(batches: Iterable[Any]) -> Iterator[Any]:
    """Number the distinct terms of a task. Input rows are (part, slot, kind, lexical, datatype, lang)."""
    numbering = _Numbering(task_number())
    for batch in batches:
        numbering.take(batch)
    yield from numbering.rows()


def encode_terms(
    dictionaries: tuple[str, ...], certificates: PeerCertificates | None, give_up_s: float, batches: Iterable[Any]
) -> Iterator[Any]:
    """Number terms like `number_terms`, but with ids from a cluster's dictionary service.

    The task requests each distinct term once. When the task is done, the terms are durable. TransientError if no
    dictionary responds for `give_up_s` seconds.
    """
    numbering = _Numbering(task_number())
    for batch in batches:
        numbering.take(batch)
    service = FlightTerms(dictionaries, certificates)
    try:
        yield from numbering.rows_by(service, give_up_s)
    finally:
        service.close()


class _Numbering:
    def __init__(self, task: int) -> None:
        self._task = task
        self._dictionary = native.Dictionary()
        self._codes = np.zeros(1, np.uint64)  # by slot of the dictionary: known id, or 0
        self._tags = np.zeros(1, np.uint64)
        self._parts: list[NDArray[np.int64]] = []
        self._locals: list[Ids] = []
        self._slots: list[Ids] = []

    def take(self, batch: Any) -> None:
        part = batch.column("part").to_numpy(zero_copy_only=False)
        local = co.ids_of(batch.column("slot"))
        kinds = batch.column("kind").to_numpy(zero_copy_only=False).astype(np.uint8)
        # A blank node's name contains a space, which an IRI cannot.
        kinds = np.where(kinds == co.BLANK, np.uint8(co.IRI), kinds)
        texts = (co.texts_of(batch.column(name)) for name in ("lexical", "datatype", "lang"))
        slots = native.intern_columns(self._dictionary, kinds, *texts) & PAYLOAD
        self._reach(native.next_slot(self._dictionary))
        self._tags[slots] = local >> TAG_SHIFT
        known = part == KNOWN_PART  # in this part, the local ids are the ids
        self._codes[slots[known]] = local[known]
        self._parts.append(part[~known])
        self._locals.append(local[~known])
        self._slots.append(slots[~known])

    def _reach(self, size: int) -> None:
        if size > len(self._codes):
            more = np.zeros(max(size, 2 * len(self._codes)) - len(self._codes), np.uint64)
            self._codes = np.concatenate([self._codes, more])
            self._tags = np.concatenate([self._tags, more])

    def rows(self) -> Iterator[Any]:
        n = native.next_slot(self._dictionary)
        codes, tags = self._codes[:n].copy(), self._tags[:n]
        new = codes == 0
        new[0] = False
        blank = tags == TAG_BLANK
        entries, blanks = new & ~blank, new & blank
        for chosen in (entries, blanks):
            places = np.flatnonzero(chosen)
            numbers = np.arange(len(places), dtype=np.uint64)
            task = np.uint64(self._task) << _TASK_SHIFT
            codes[places] = _NEW | (tags[places] << TAG_SHIFT) | task | numbers
        yield _rows("count", 1, task=[self._task], entries=[int(entries.sum())], blanks=[int(blanks.sum())])
        yield from self._maps(codes)
        yield from self._terms(codes, entries)

    def _maps(self, codes: Ids) -> Iterator[Any]:
        if not self._parts:
            return
        part, local, slots = np.concatenate(self._parts), np.concatenate(self._locals), np.concatenate(self._slots)
        order = np.argsort(part, kind="stable")
        part, local, meaning = part[order], local[order], codes[slots[order]]
        for first, end in co.runs(part):
            packed = {"slots": [co.packed(local[first:end])], "codes": [co.packed(meaning[first:end])]}
            yield _rows("map", 1, part=[int(part[first])], **packed)

    def rows_by(self, service: FlightTerms, give_up_s: float) -> Iterator[Any]:
        """Yield the rows with the ids that a service assigns."""
        codes = self._codes[: native.next_slot(self._dictionary)].copy()
        for slots, kinds, texts in self._parts_of_dictionary(_TERMS_PER_REQUEST):
            blank = self._tags[slots] == TAG_BLANK
            asked = pa.array(np.where(blank, np.uint8(co.BLANK), kinds)), *texts
            codes[slots] = patiently(partial(service.encode_columns, *asked), give_up_s)
        yield _rows("count", 1, task=[self._task], entries=[len(codes) - 1], blanks=[0])
        yield from self._maps(codes)

    def _terms(self, codes: Ids, selected: NDArray[np.bool_]) -> Iterator[Any]:
        for slots, kinds, texts in self._parts_of_dictionary(TERMS_PER_BATCH):
            mask = pa.array(selected[slots])
            lexical, datatype, lang = (column.filter(mask) for column in texts)
            chosen = slots[selected[slots]]
            kind = pa.array(kinds, pa.int32()).filter(mask)
            code = co.longs(codes[chosen])
            yield _rows("new", len(chosen), code=code, kind=kind, lexical=lexical, datatype=datatype, lang=lang)

    def _parts_of_dictionary(self, terms: int) -> Iterator[tuple[Ids, NDArray[np.uint8], list[Any]]]:
        """Yield the slots, kinds and texts of the dictionary's terms, at most `terms` terms at a time."""
        slot, end = 1, native.next_slot(self._dictionary)
        while slot < end:
            ids, kinds, *texts, slot = native.dictionary_columns(self._dictionary, slot, terms, BYTES_PER_BATCH)
            yield ids & PAYLOAD, kinds, [co.strings(column) for column in texts]


def _rows(what: str, n: int, **given: Any) -> Any:
    given["what"] = [what] * n
    arrays = [
        pa.nulls(n, field.type) if field.name not in given else pa.array(given[field.name], field.type)
        for field in NUMBERED
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=NUMBERED)
