"""The progress topic: one compacted partition per bucket, with separate records for each query group.

| key | value |
| --- | --- |
| `group NUMBER` | `GroupProgress`: the group's last instant, and for each stream the time after which it needs tuples |
| `state NUMBER PART` | `ProgressPart`: a part of the group's state, at most `PART_BYTES` |
| `bucket` | `BucketProgress`: epoch and step. It is the last record of each transaction |

A transaction contains the records of changed groups only. No record grows with the number of groups, or with the size
of the previous answer that ISTREAM needs (ADR 54).
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log import Record
from penstock.quarantine.kinds import PROGRESS
from penstock.wire import BucketProgress, GroupProgress, ProgressPart, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.log import Message
    from penstock.quarantine import InternalRecords
    from penstock.wire.codec import Wire

PART_BYTES = 16 << 20
"""Maximum bytes of a group's state per record."""
_BUCKET = b"bucket"
_GROUP, _PART = re.compile(rb"group (\d+)"), re.compile(rb"state (\d+) (\d+)")
_LEVEL = 1  # zlib's compression level: a low one suffices, because terms repeat
_STATE = ("counted", "predecessor", "published", "complete", "members")
_LATER = ("complete", "members")  # states that earlier versions wrote lack these fields


@dataclass(frozen=True, slots=True)
class GroupState(GroupProgress):
    """The progress of a group, and the state from which another engine can continue the group. Each field of the state
    is JSON text or None.

    `counted`: state of count windows. `predecessor`: answers at `last_ms`, for ISTREAM, DSTREAM and `changes`.
    `published`: the last batch of the derived stream and the tuples of its open batches, in the cluster's ids.
    `complete`: numbers of queries with `changes`. The results topic of each of these queries has every change since the
    query's last complete answer. `members`: only for a query set; the records of the set's parameters topic that have
    taken effect.
    """

    counted: str | None = None
    predecessor: str | None = None
    published: str | None = None
    complete: str | None = None
    members: str | None = None


@dataclass(frozen=True, slots=True)
class BucketState:
    """The committed state of a bucket. `epoch`: incremented by each engine that opens the bucket. `step`: the last step
    of the total order that the engine had applied at the commit.
    """

    bucket: int
    epoch: int
    step: int
    groups: tuple[GroupState, ...] = ()


class ProgressView:
    """The content of a bucket's partition of the progress topic, from the records read so far. Quarantined records have
    no effect.

    `states`: whether to retain the states of groups.
    """

    def __init__(self, records: InternalRecords, *, states: bool = False) -> None:
        self._records, self._keeps_states, self._partition = records, states, ""
        self._last: BucketProgress | None = None
        self._groups: dict[int, GroupProgress] = {}
        self._parts: dict[int, dict[int, ProgressPart]] = {}

    def feed(self, message: Message) -> bool:
        """Apply a record. Returns whether the record ends a transaction. UnreadableRecordError if the record cannot be
        decoded.
        """
        key, self._partition = message.key or b"", f"{message.topic}[{message.partition}]"
        if message.value is None:
            self._remove(key)
            return False
        match self._records.read(message, PROGRESS):
            case BucketProgress() as found:
                self._last = found
                return True
            case GroupProgress() as found:
                self._groups[found.group] = found
            case ProgressPart() as found if self._keeps_states:
                self._parts.setdefault(found.group, {})[found.part] = found
        return False

    def _remove(self, key: bytes) -> None:
        if found := _GROUP.fullmatch(key):
            self._groups.pop(int(found[1]), None)
        elif found := _PART.fullmatch(key):
            self._parts.get(int(found[1]), {}).pop(int(found[2]), None)

    @property
    def step(self) -> int:
        """The step of the last transaction, 0 before the first transaction."""
        return 0 if self._last is None else self._last.step

    @property
    def groups(self) -> dict[int, GroupProgress]:
        """The progress of each group, without its state."""
        return dict(self._groups)

    def parts(self) -> dict[int, int]:
        """Return the number of parts of each group's state, by group."""
        return {number: max(self._parts.get(number, {}), default=-1) + 1 for number in self._groups}

    def whole(self) -> BucketState | None:
        """Return the bucket's progress with all states, or None if the bucket has no commit. Call after the partition
        was read to its end.

        StorageError if a part of a state is missing or corrupt.
        """
        if (last := self._last) is None:
            return None
        return BucketState(last.bucket, last.epoch, last.step, tuple(map(self._state, self._groups.values())))

    def _state(self, progress: GroupProgress) -> GroupState:
        state = GroupState(progress.group, progress.last_ms, progress.retained)
        parts = self._parts.get(progress.group)
        if not parts:
            return state
        first = parts.get(0)
        count = 0 if first is None else first.parts
        if not count or any(number not in parts for number in range(count)):
            where = f"{self._partition}: the state of group {progress.group}"
            raise StorageError(f"{where} lacks parts: found {sorted(parts)} of {count}")
        try:
            saved = json.loads(zlib.decompress(b"".join(parts[number].data for number in range(count))))
            return replace(state, **{name: saved[name] for name in _STATE if name in saved or name not in _LATER})
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self._partition}: the state of group {progress.group} is damaged: {error}") from error


class ProgressWriter:
    """Creates the records of a bucket's transactions. `parts`: the number of state parts in the partition, by group."""

    def __init__(self, topic: str, bucket: int, parts: Mapping[int, int]) -> None:
        self._topic, self._bucket = topic, bucket
        self._parts = self._writing = dict(parts)

    def records(self, state: BucketState, changed: Iterable[int]) -> list[Record]:
        """Return the records that update the partition to `state`. These are records of the groups in `changed`,
        records of groups that the partition does not contain yet, deletions of removed groups, and the record of
        `confirmation`. All other groups must still have the progress and state of the last commit.

        Call `committed` after the commit.
        """
        groups = {group.group: group for group in state.groups}
        self._writing = {number: parts for number, parts in self._parts.items() if number in groups}
        found: list[Record] = []
        for number in sorted({*changed, *(groups.keys() - self._parts.keys())} & groups.keys()):
            found += self._group(groups[number])
        for number in sorted(self._parts.keys() - groups.keys()):
            found.append(self._record(b"group %d" % number, None))
            found += (self._record(b"state %d %d" % (number, part), None) for part in range(self._parts[number]))
        return [*found, self.confirmation(state)]

    def _group(self, group: GroupState) -> Iterator[Record]:
        number, parts = group.group, _cut(_saved(group))
        yield self._record(b"group %d" % number, GroupProgress(number, group.last_ms, group.retained))
        for part, data in enumerate(parts):
            yield self._record(b"state %d %d" % (number, part), ProgressPart(number, part, len(parts), data))
        for part in range(len(parts), self._parts.get(number, 0)):
            yield self._record(b"state %d %d" % (number, part), None)
        self._writing[number] = len(parts)

    def confirmation(self, state: BucketState) -> Record:
        """Return the record that ends a transaction. A transaction with this record alone changes only the epoch and
        the step.
        """
        return self._record(_BUCKET, BucketProgress(state.bucket, state.epoch, state.step))

    def _record(self, key: bytes, value: Wire | None) -> Record:
        return Record(self._topic, None if value is None else encode(value), key, self._bucket)

    def committed(self) -> None:
        """Record that the transaction with the records of the last call of `records` is committed."""
        self._parts = self._writing


def _saved(group: GroupState) -> bytes:
    state = {name: getattr(group, name) for name in _STATE}
    if not any(value is not None for value in state.values()):
        return b""
    return zlib.compress(json.dumps(state).encode(), _LEVEL)


def _cut(data: bytes) -> list[bytes]:
    return [data[first : first + PART_BYTES] for first in range(0, len(data), PART_BYTES)]
