"""The state machine to which a replica applies steps: an engine's runtime, or a store's shards."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.core._native import Ids
    from penstock.engine.intake.bins import Bins
    from penstock.engine.intake.declaration import Declaration
    from penstock.engine.stored_graph import Columns
    from penstock.errors import UnavailableError
    from penstock.wire.records import Flags, Numbers


class FollowedStream(Protocol):
    """A stream of a state machine. `publisher`: the query that publishes the stream, or None. `ended`: whether this is
    a derived stream that has ended. `closed_ms`: the end in ms of the last closed batch, None if no batch is closed
    yet.
    """

    publisher: str | None
    ended: bool
    closed_ms: int | None

    @property
    def declaration(self) -> Declaration:
        """The stream's declaration."""

    @property
    def iri(self) -> str:
        """The stream's IRI."""

    @property
    def number(self) -> int:
        """The stream's number in the stored graph, which is never reused."""

    @property
    def batch_ms(self) -> int:
        """The batch interval in ms."""

    def append(self, times: Numbers, s: Ids, p: Ids, o: Ids, removed: Flags | None = None) -> None:
        """Append the tuples of one batch, in order of arrival. `times` in ms; `s`, `p`, `o`: term ids. `removed`: a
        flag that is 1 for a tuple that removes a triple.
        """

    def move(self, watermark: int) -> None:
        """Advance the watermark to `watermark`, in ms. Batches that end at or before the watermark can then be
        closed.
        """


class FollowedStreams(Protocol):
    """The declared streams. `next_number`: the number in the stored graph that the next declared stream gets."""

    next_number: int

    def __iter__(self) -> Iterator[FollowedStream]: ...

    def __contains__(self, iri: object) -> bool: ...

    def get(self, iri: str) -> FollowedStream:
        """Return a stream. UnknownStreamError if no stream has the IRI."""

    def declare(self, declaration: Declaration) -> FollowedStream:
        """Add a stream."""

    def drop(self, iri: str) -> None:
        """Remove a stream. The stream's absorbed tuples remain in the stored graph."""


class StateMachine(Protocol):
    """The state to which a replica applies the steps of the total order."""

    @property
    def streams(self) -> FollowedStreams:
        """The declared streams."""

    def moved(self, iri: str) -> None:
        """Close the batches that a stream's watermark permits, and evaluate the queries that become due."""

    def begin(self, iri: str, point: int) -> None:
        """Handle the first progress of a stream. `point`: a time in ms. This time becomes the registration point of
        each query that reads the stream and has no registration point yet.
        """

    def insert(self, s: Ids, p: Ids, o: Ids, g: Ids, stream: int, number: int) -> None:
        """Store quads, given as columns of term ids, as one commit. `stream`, `number`: the stream number and the batch
        number, which identify the commit.
        """

    def change(self, removed: Columns, added: Columns, stream: int, number: int) -> object:
        """Remove quads and then store other quads, as one commit. `stream`, `number`: as for `insert`."""

    def load(self, bins: Bins, stream: int, number: int) -> Iterator[UnavailableError | None]:
        """Store sorted bins as one commit, which becomes visible at the end. Yields None after each bin. Yields an
        UnavailableError if the bin cannot be read now; the next iteration then retries the bin. `stream`, `number`: as
        for `insert`.
        """
