"""The progress topic's records: a compacted partition for each bucket, in which every group has records of its own.

| key | value |
| --- | --- |
| `group NUMBER` | the group's last instant, and what its windows still look at |
| `state NUMBER PART` | part of its state, of at most `PART_BYTES`: count windows, predecessors, what it has published |
| `bucket` | the bucket's epoch and step: the last record of each transaction |

A transaction has the records of the groups that have changed. So no record grows with the number of groups, nor with an
answer that ISTREAM compares with.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log import Record
from penstock.quarantine.kinds import PROGRESS
from penstock.wire import BucketProgress, ProgressPart, encode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.log import Message
    from penstock.quarantine import InternalRecords
    from penstock.wire import GroupProgress

PART_BYTES = 16 << 20
"""Of a group's state in one record."""
_BUCKET = b"bucket"
_GROUP, _PART = re.compile(rb"group (\d+)"), re.compile(rb"state (\d+) (\d+)")
_LEVEL = 1  # of zlib: terms repeat themselves
_STATE = ("counted", "predecessor", "published")


class ProgressView:
    """What a bucket's partition says, record by record. `records` decodes them: one that was set aside has no effect.
    `states`: whether groups' states are wanted, too.
    """

    def __init__(self, records: InternalRecords, *, states: bool = False) -> None:
        self._records, self._wants_states, self._partition = records, states, ""
        self._last: BucketProgress | None = None
        self._groups: dict[int, GroupProgress] = {}
        self._parts: dict[int, dict[int, ProgressPart]] = {}

    def feed(self, message: Message) -> bool:
        """Take the next record; True at the end of a transaction. UnreadableRecordError where it is no progress."""
        key, self._partition = message.key or b"", f"{message.topic}[{message.partition}]"
        if message.value is None:
            self._remove(key)
            return False
        found = self._records.read(message, PROGRESS)
        if found is None:
            return False
        if isinstance(found, ProgressPart):
            if self._wants_states:
                self._parts.setdefault(found.group, {})[found.part] = found
            return False
        self._groups.update((progress.group, progress) for progress in found.groups)
        if key == _BUCKET:
            self._last = found
        return key == _BUCKET

    def _remove(self, key: bytes) -> None:
        if found := _GROUP.fullmatch(key):
            self._groups.pop(int(found[1]), None)
        elif found := _PART.fullmatch(key):
            self._parts.get(int(found[1]), {}).pop(int(found[2]), None)

    @property
    def step(self) -> int:
        """The step of the last transaction."""
        return 0 if self._last is None else self._last.step

    @property
    def groups(self) -> dict[int, GroupProgress]:
        """The groups' progress without their states."""
        return dict(self._groups)

    def parts(self) -> dict[int, int]:
        """Return how many parts each group's state has."""
        return {number: max(self._parts.get(number, {}), default=-1) + 1 for number in self._groups}

    def whole(self) -> BucketProgress | None:
        """Return the progress with the groups' states, None where nothing was ever committed. Call at the end of the
        partition. StorageError where a part of a state is missing.
        """
        if self._last is None:
            return None
        return replace(self._last, groups=tuple(map(self._with_state, self._groups.values())))

    def _with_state(self, progress: GroupProgress) -> GroupProgress:
        parts = self._parts.get(progress.group)
        if not parts:
            return progress
        first = parts.get(0)
        wanted = 0 if first is None else first.parts
        if not wanted or any(number not in parts for number in range(wanted)):
            where = f"{self._partition}: the progress of group {progress.group}"
            raise StorageError(f"{where} lacks parts: it has {sorted(parts)} of {wanted}")
        try:
            state = json.loads(zlib.decompress(b"".join(parts[number].data for number in range(wanted))))
            return replace(progress, **{name: state[name] for name in _STATE})
        except (zlib.error, ValueError, KeyError, TypeError) as error:
            raise StorageError(f"{self._partition}: the state of group {progress.group} is damaged: {error}") from error


class ProgressWriter:
    """The records of one bucket's transactions. `parts`: of each group's state, as the partition has them."""

    def __init__(self, topic: str, bucket: int, parts: Mapping[int, int]) -> None:
        self._topic, self._bucket = topic, bucket
        self._parts = self._writing = dict(parts)

    def records(self, progress: BucketProgress, changed: Iterable[int]) -> list[Record]:
        """Return the records that bring the partition to `progress`, of which these groups have changed."""
        groups = {group.group: group for group in progress.groups}
        self._writing = {number: parts for number, parts in self._parts.items() if number in groups}
        found: list[Record] = []
        for number in sorted({*changed, *(groups.keys() - self._parts.keys())} & groups.keys()):
            found += self._group(progress, groups[number])
        for number in sorted(self._parts.keys() - groups.keys()):
            found.append(self._record(b"group %d" % number, None))
            found += (self._record(b"state %d %d" % (number, part), None) for part in range(self._parts[number]))
        return [*found, self.confirmation(progress)]

    def _group(self, progress: BucketProgress, group: GroupProgress) -> Iterator[Record]:
        number, parts = group.group, _cut(_state_of(group))
        light = replace(group, counted=None, predecessor=None, published=None)
        yield self._record(b"group %d" % number, encode(replace(progress, groups=(light,))))
        for part, data in enumerate(parts):
            value = encode(ProgressPart(number, part, len(parts), data))
            yield self._record(b"state %d %d" % (number, part), value)
        for part in range(len(parts), self._parts.get(number, 0)):
            yield self._record(b"state %d %d" % (number, part), None)
        self._writing[number] = len(parts)

    def confirmation(self, progress: BucketProgress) -> Record:
        """Return the record that ends a transaction; alone it says that nothing has changed."""
        return self._record(_BUCKET, encode(replace(progress, groups=())))

    def _record(self, key: bytes, value: bytes | None) -> Record:
        return Record(self._topic, value, key, self._bucket)

    def committed(self) -> None:
        """The records that were asked for last are in the log."""
        self._parts = self._writing


def _state_of(progress: GroupProgress) -> bytes:
    state = {name: getattr(progress, name) for name in _STATE}
    if not any(value is not None for value in state.values()):
        return b""
    return zlib.compress(json.dumps(state).encode(), _LEVEL)


def _cut(data: bytes) -> list[bytes]:
    return [data[first : first + PART_BYTES] for first in range(0, len(data), PART_BYTES)]
