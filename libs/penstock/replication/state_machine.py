"""What the spine's steps are applied to, as far as they concern it: an engine's runtime, or a store's shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.errors import UnavailableError
    from penstock.wire.records import Numbers


class FollowedStream(Protocol):
    """A stream as far as steps concern it."""

    publisher: str | None
    ended: bool
    closed_ms: int | None

    @property
    def declaration(self) -> Declaration:
        """What its user said about it."""

    @property
    def iri(self) -> str:
        """Its name."""

    @property
    def number(self) -> int:
        """The stored graph's number for it, never given twice."""

    @property
    def batch_ms(self) -> int:
        """The batch interval."""

    def append(self, times: Numbers, s: Ids, p: Ids, o: Ids) -> None:
        """Take tuples of one batch, in order of arrival."""

    def move(self, watermark: int) -> None:
        """Let batches up to that time close."""


class FollowedStreams(Protocol):
    """The streams that there are. `next_number`: the stored graph's number for the next one."""

    next_number: int

    def __iter__(self) -> Iterator[FollowedStream]: ...

    def __contains__(self, iri: object) -> bool: ...

    def get(self, iri: str) -> FollowedStream:
        """Return the stream; UnknownStreamError."""

    def declare(self, declaration: Declaration) -> FollowedStream:
        """Add a stream."""

    def drop(self, iri: str) -> None:
        """Forget a stream; what it absorbed stays in the stored graph."""


class StateMachine(Protocol):
    """What steps are applied to."""

    @property
    def streams(self) -> FollowedStreams:
        """The streams that there are."""

    def moved(self, iri: str) -> None:
        """Close what a stream's watermark allows, and do what becomes due."""

    def begin(self, iri: str, point: int) -> None:
        """A stream has its first progress: queries that waited for it begin there."""

    def insert(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int, number: int) -> None:
        """Store quads, as a commit of `stream`'s batch `number`."""

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Store sorted bins, as one such commit, yielding after each. An error is yielded where one cannot be read now:
        what comes next tries it again. Nothing is visible before the last.
        """
