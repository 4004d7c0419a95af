"""Declares and drops streams."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import LimitError
from penstock.log import Partition, Topic
from penstock.services.coordinator.query_commands import check_size
from penstock.services.coordinator.registrar import MAX_NAME_BYTES, Beginning
from penstock.wire import StreamDeclaration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.log import Log
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.filter_updates import FilterUpdates
    from penstock.services.coordinator.registrar import Registrar, StreamRequest
    from penstock.services.coordinator.state_writer import StateWriter

MAX_DECLARED = 10_000
"""Maximum number of streams per request. A request is one transaction."""


class StreamCommands:
    """Declares and drops streams, one transaction per call. A call that raises DataError, LimitError or
    UnknownStreamError has written no command. After any other error, the outcome is possibly unknown.
    """

    def __init__(
        self, log: Log, topics: ClusterTopics, registrar: Registrar, writer: StateWriter, filters: FilterUpdates
    ) -> None:
        self._log = log
        self._topics = topics
        self._registrar = registrar
        self._writer = writer
        self._filters = filters

    def declare(self, requested: Sequence[StreamRequest]) -> list[StreamDeclaration]:
        """Declare streams, all or none. Creates the streams' topics before it writes the commands. Errors: see
        `Registrar.declare`; LimitError above MAX_DECLARED.

        If an earlier stream with the same IRI had a predicate filter, the new stream starts with a filter that lets all
        predicates through. The reason is that the two streams can have different timing predicates.
        """
        if len(requested) > MAX_DECLARED:
            raise LimitError(f"{len(requested)} streams in one request (MAX_DECLARED is {MAX_DECLARED})")
        for iri, name, _ in requested:
            check_size("a stream's name", iri if name is None else name, MAX_NAME_BYTES, "MAX_NAME_BYTES")
        unfiltered = self._filters.unfiltered(iri for iri, _, _ in requested)
        versions = {iri: record.version for iri, record in unfiltered.items()}
        topics = self._log.topics()
        change = self._registrar.declare_all(requested, self._beginnings(requested, versions, topics))
        declared = [command for command in change.commands if isinstance(command, StreamDeclaration)]
        if declared:
            self._writer.create(self._topics_of(declared, topics))
        self._writer.commit_change(change, [unfiltered[each.iri] for each in declared if each.iri in unfiltered])
        return [self._registrar.streams[iri] for iri, _, _ in requested]

    def drop(self, iri: str) -> None:
        """Drop a stream. Errors: see `Registrar.drop`."""
        self._writer.commit_change(self._registrar.drop(iri))

    def _beginnings(
        self, requested: Sequence[StreamRequest], versions: Mapping[str, int], topics: Mapping[str, int]
    ) -> dict[str, Beginning]:
        """Return where each new stream begins in its topics, by IRI.

        Earlier records of the topics belong to an earlier stream with the same topics. A reader that does not know the
        new declaration yet must not assign records of the new stream to the earlier stream.
        """
        names = self._topics.names
        named = {iri: name or iri for iri, name, _ in requested if iri not in self._registrar.streams}
        again = {iri: name for iri, name in named.items() if names.tuples(name) in topics}
        tuples = self._ends(topics, {iri: names.tuples(name) for iri, name in again.items()})
        events = self._ends(topics, {iri: names.events(name) for iri, name in again.items()})
        return {iri: Beginning(versions.get(iri, 0), events.get(iri, ()), tuples.get(iri, ())) for iri in named}

    def _ends(self, topics: Mapping[str, int], asked: Mapping[str, str]) -> dict[str, tuple[int, ...]]:
        """Return the end offset of each partition of a stream's topic, by IRI. `asked`: the topics, by IRI. Makes at
        most one request to the brokers.
        """
        partitions = {iri: [Partition(topic, i) for i in range(topics.get(topic, 0))] for iri, topic in asked.items()}
        every = [each for found in partitions.values() for each in found]
        spans = self._log.spans(every) if every else {}
        return {iri: tuple(spans[each].end for each in found) for iri, found in partitions.items()}

    def _topics_of(self, streams: Sequence[StreamDeclaration], known: Mapping[str, int]) -> list[Topic]:
        names = self._topics.names
        made = []
        for stream in streams:
            events = names.events(stream.name)
            partitions = known.get(events, 1)  # possibly, a producer has created the topic with more partitions
            made += [
                Topic(
                    events, partitions, compression="uncompressed"
                ),  # users write records: without compression, no small batch becomes large
                Topic(names.tuples(stream.name), partitions),
            ]
        return made
