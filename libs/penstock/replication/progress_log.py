"""The progress topic: one compacted partition per bucket, with separate records for each query group.

| key | value |
| --- | --- |
| `group NUMBER` | `GroupProgress`: the last instant, and for each stream the time after which the group needs tuples |
| `state NUMBER PART` | `ProgressPart`: a part of the group's state, at most `PART_BYTES` |
| `answer NUMBER PIECE PART` | `ProgressPart`: a part of a piece of the group's previous answers |
| `bucket` | `BucketProgress`: epoch and step. This record is the last record of each transaction |

A transaction contains the records of changed groups only. No record grows with the number of groups, or with the size
of the previous answer that ISTREAM needs (ADR 54).

The previous answers of a group are a sequence of pieces: a base, and the changes since the base (ADR 108). A
transaction adds a piece, or replaces all pieces by a new base. A new base never has the number of a piece that it
replaces, and the group's state contains the numbers of its pieces. The pieces of different states are therefore never
mixed.
"""

from __future__ import annotations

import json
import re
import zlib
from dataclasses import dataclass, field, replace
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
_STATE_PIECE = 0  # the number of the state among the pieces; pieces of answers begin with 1
_GROUP, _PART = re.compile(rb"group (\d+)"), re.compile(rb"state (\d+) (\d+)")
_ANSWER = re.compile(rb"answer (\d+) (\d+) (\d+)")
_LEVEL = 1  # zlib's compression level: a low one suffices, because terms repeat
_STATE = ("counted", "published", "complete", "members")


@dataclass(frozen=True, slots=True)
class GroupState(GroupProgress):
    """The progress of a group, and the state from which another engine can continue the group. Each field of the state
    except `answers` and `earlier` is JSON text or None.

    `counted`: state of count windows. `published`: the last batch of the derived stream and the tuples of its open
    batches, in the cluster's ids.
    `complete`: numbers of queries with `changes`. The results topic of each of these queries has every change since the
    query's last complete answer. `members`: only for a query set; the records of the set's parameters topic that have
    taken effect.

    `answers`: the answers at `last_ms`, for ISTREAM, DSTREAM and `changes`, as pieces of JSON text. The pieces are a
    base, and the changes since the base. In a state that is to be written, `answers` contains only the pieces that
    follow the first `earlier` pieces of the partition. `earlier` is 0, or the number of pieces that the partition
    contains.
    """

    counted: str | None = None
    published: str | None = None
    complete: str | None = None
    members: str | None = None
    answers: tuple[str, ...] = ()
    earlier: int = 0


@dataclass(frozen=True, slots=True)
class BucketState:
    """The committed state of a bucket. `epoch`: incremented by each engine that opens the bucket. `step`: the last step
    of the total order that the engine had applied at the commit.
    """

    bucket: int
    epoch: int
    step: int
    groups: tuple[GroupState, ...] = ()


@dataclass(frozen=True, slots=True)
class StoredParts:
    """The parts of a group's state and answers in the partition. `state`: number of parts of the state. `pieces`:
    number of parts of each piece, by number of the piece, ascending.
    """

    state: int = 0
    pieces: Mapping[int, int] = field(default_factory=dict)

    @property
    def next(self) -> int:
        """The number of the next piece."""
        return max(self.pieces, default=0) + 1


class ProgressView:
    """The content of a bucket's partition of the progress topic, from the records read so far. Quarantined records have
    no effect.

    `states`: whether to retain the states of groups.
    """

    def __init__(self, records: InternalRecords, *, states: bool = False) -> None:
        self._records, self._keeps_states, self._partition = records, states, ""
        self._last: BucketProgress | None = None
        self._groups: dict[int, GroupProgress] = {}
        self._parts: dict[int, dict[tuple[int, int], ProgressPart]] = {}  # by group, and by piece and part

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
                self._parts.setdefault(found.group, {})[found.piece, found.part] = found
        return False

    def _remove(self, key: bytes) -> None:
        if found := _GROUP.fullmatch(key):
            self._groups.pop(int(found[1]), None)
        elif found := _PART.fullmatch(key):
            self._parts.get(int(found[1]), {}).pop((_STATE_PIECE, int(found[2])), None)
        elif found := _ANSWER.fullmatch(key):
            self._parts.get(int(found[1]), {}).pop((int(found[2]), int(found[3])), None)

    @property
    def step(self) -> int:
        """The step of the last transaction, 0 before the first transaction."""
        return 0 if self._last is None else self._last.step

    @property
    def groups(self) -> dict[int, GroupProgress]:
        """The progress of each group, without its state."""
        return dict(self._groups)

    def parts(self) -> dict[int, StoredParts]:
        """Return the parts of each group's state and answers, by group."""
        return {number: self._stored(number) for number in self._groups}

    def _stored(self, number: int) -> StoredParts:
        counts: dict[int, int] = {}
        for piece, part in sorted(self._parts.get(number, ())):
            counts[piece] = part + 1
        return StoredParts(counts.pop(_STATE_PIECE, 0), counts)

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
        if not self._parts.get(progress.group):
            return state
        text = self._text(progress.group, _STATE_PIECE, "the state")
        try:
            saved = json.loads(text)
            first, end = saved["answers"]
            state = replace(state, **{name: saved[name] for name in _STATE})
        except (ValueError, KeyError, TypeError) as error:
            raise self._damaged(progress.group, "the state", error) from error
        pieces = (self._text(progress.group, piece, "an answer") for piece in range(first, end))
        return replace(state, answers=tuple(pieces))

    def _text(self, group: int, piece: int, what: str) -> str:
        parts = self._parts[group]
        first = parts.get((piece, 0))
        count = 0 if first is None else first.parts
        if not count or any((piece, number) not in parts for number in range(count)):
            found = sorted(part for number, part in parts if number == piece)
            raise StorageError(f"{self._partition}: {what} of group {group} lacks parts: found {found} of {count}")
        try:
            return zlib.decompress(b"".join(parts[piece, number].data for number in range(count))).decode()
        except (zlib.error, ValueError) as error:
            raise self._damaged(group, what, error) from error

    def _damaged(self, group: int, what: str, error: Exception) -> StorageError:
        return StorageError(f"{self._partition}: {what} of group {group} is damaged: {error}")


class ProgressWriter:
    """Creates the records of a bucket's transactions. `parts`: the parts that the partition contains, by group."""

    def __init__(self, topic: str, bucket: int, parts: Mapping[int, StoredParts]) -> None:
        self._topic, self._bucket = topic, bucket
        self._parts = self._writing = dict(parts)

    def records(self, state: BucketState, changed: Iterable[int]) -> list[Record]:
        """Return the records that update the partition to `state`. These are records of the groups in `changed`,
        records of groups that the partition does not contain yet, deletions of removed groups, and the record that
        `confirmation` returns. All other groups must still have the progress and state of the last commit.

        Call `committed` after the commit.
        """
        groups = {group.group: group for group in state.groups}
        self._writing = {number: parts for number, parts in self._parts.items() if number in groups}
        found: list[Record] = []
        for number in sorted({*changed, *(groups.keys() - self._parts.keys())} & groups.keys()):
            found += self._group(groups[number])
        for number in sorted(self._parts.keys() - groups.keys()):
            before = self._parts[number]
            found.append(self._record(b"group %d" % number, None))
            found += self._deletions(number, _STATE_PIECE, 0, before.state)
            for piece, parts in before.pieces.items():
                found += self._deletions(number, piece, 0, parts)
        return [*found, self.confirmation(state)]

    def _group(self, group: GroupState) -> Iterator[Record]:
        number, before = group.group, self._parts.get(group.group, StoredParts())
        yield self._record(b"group %d" % number, GroupProgress(number, group.last_ms, group.retained))
        pieces = dict(list(before.pieces.items())[: group.earlier])
        assert len(pieces) == group.earlier, f"group {number} continues {group.earlier} of {len(before.pieces)} pieces"
        first = next(iter(pieces), before.next)
        for piece, text in enumerate(group.answers, first + group.earlier):
            data = _cut(zlib.compress(text.encode(), _LEVEL))
            yield from self._piece(number, piece, data)
            pieces[piece] = len(data)
        for piece, parts in before.pieces.items():
            yield from self._deletions(number, piece, pieces.get(piece, 0), parts)
        state = _cut(_saved(group, [first, first + len(pieces)]))
        yield from self._piece(number, _STATE_PIECE, state)
        yield from self._deletions(number, _STATE_PIECE, len(state), before.state)
        self._writing[number] = StoredParts(len(state), pieces)

    def _piece(self, group: int, piece: int, parts: list[bytes]) -> Iterator[Record]:
        for part, data in enumerate(parts):
            yield self._record(_key(group, piece, part), ProgressPart(group, part, len(parts), data, piece))

    def _deletions(self, group: int, piece: int, first: int, end: int) -> Iterator[Record]:
        return (self._record(_key(group, piece, part), None) for part in range(first, end))

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


def _key(group: int, piece: int, part: int) -> bytes:
    return b"state %d %d" % (group, part) if piece == _STATE_PIECE else b"answer %d %d %d" % (group, piece, part)


def _saved(group: GroupState, answers: list[int]) -> bytes:
    """Return a group's state. `answers`: the number of the first piece of its answers, and the number after the last
    one.
    """
    state = {name: getattr(group, name) for name in _STATE}
    if answers[0] == answers[1] and not any(value is not None for value in state.values()):
        return b""
    return zlib.compress(json.dumps(state | {"answers": answers}).encode(), _LEVEL)


def _cut(data: bytes) -> list[bytes]:
    return [data[first : first + PART_BYTES] for first in range(0, len(data), PART_BYTES)]
