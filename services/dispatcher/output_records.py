"""The dispatcher's output records: closed batches for all shards, and late and rejected events with their original
bytes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.ingest.refused_records import DeadLetter, LateEvent, dead_letter_record, late_record
from penstock.log import Partition, Record
from penstock.wire import ShardBatch, encode, parts

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from numpy.typing import NDArray

    from penstock.log import Message
    from penstock.log.topics import TopicNames
    from penstock.log.view import Lookup
    from penstock.services.dispatcher.refused_runs import Refused
    from penstock.services.dispatcher.stream_time import ClosedBatch
    from penstock.wire import StreamDeclaration

_NOWHERE = np.empty(0, np.int64)
_NO_FLAGS = np.empty(0, np.uint8)


def batch_records(names: TopicNames, shards: int, stream: StreamDeclaration, batch: ClosedBatch) -> list[Record]:
    """Return the records of a batch for the shards topic. Each shard gets the tuples whose subjects the shard owns, in
    one record. If the batch is large, each shard gets several records.
    """
    owners = native.shard_numbers(batch.rows.subjects, shards)
    occupied = np.unique(owners).tolist()
    if len(owners) > parts.PART_TUPLES:
        whole = [_part(stream, batch, np.flatnonzero(owners == shard)) for shard in range(shards)]
        split = enumerate(parts.split(whole))
        return [Record(names.shards, encode(each), None, shard) for shard, records in split for each in records]
    # Most batches have no tuples for most shards. Records without tuples are equal, so encode only one.
    empty = encode(_part(stream, batch, _NOWHERE)) if len(occupied) < shards else b""
    values = [empty] * shards
    for shard in occupied:
        values[shard] = encode(_part(stream, batch, np.flatnonzero(owners == shard)))
    return [Record(names.shards, value, None, shard) for shard, value in enumerate(values)]


def _part(stream: StreamDeclaration, batch: ClosedBatch, positions: NDArray[np.int64]) -> ShardBatch:
    rows = batch.rows.where(positions)
    return ShardBatch(
        stream.iri,
        batch.first,
        batch.last,
        positions.astype(np.uint32),
        rows.times,
        rows.subjects,
        rows.predicates,
        rows.objects,
        batch.begin_ms,
        stream.number,
        removed=rows.removed if rows.removed.any() else _NO_FLAGS,
    )


def refused_records(
    names: TopicNames, lookup: Lookup, refused: Collection[tuple[StreamDeclaration, Sequence[Refused]]]
) -> dict[str, list[Record]]:
    """Return the late and dead-letter records of refused events, by stream IRI. The records are in order of source
    partition and source offset. Reads the events' original bytes from the events topics, if these bytes still exist.
    TransientError if the log is unavailable.
    """
    requested: dict[Partition, list[int]] = {}
    for stream, events in refused:
        for event in events:
            requested.setdefault(Partition(names.events(stream.name), event.partition), []).append(event.offset)
    originals = lookup.fetch(requested)
    records: dict[str, list[Record]] = {}
    for stream, events in refused:
        topic = names.events(stream.name)
        for event in sorted(events):
            original = originals[Partition(topic, event.partition)].get(event.offset)
            records.setdefault(stream.iri, []).append(_refused(names, stream, topic, event, original))
    return records


def _refused(
    names: TopicNames, stream: StreamDeclaration, topic: str, event: Refused, original: Message | None
) -> Record:
    data, headers = ((original.value or b""), original.headers) if original is not None else (b"", ())
    place = topic, event.partition, event.offset
    if event.late:
        late = LateEvent(stream.iri, *place, event.time_ms, event.bound_ms, data)
        return late_record(names, late, headers, event.events)
    reason = event.limit or f"its time {event.time_ms} is further ahead than {event.bound_ms} (max_ahead_ms)"
    letter = DeadLetter(*place, reason, data, stream.iri, event.time_ms)
    return dead_letter_record(names, letter, headers, event.events)
