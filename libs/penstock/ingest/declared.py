"""The streams that users push to: declarations and drops as the coordinator's compacted log says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.log import Partition
from penstock.log.view import CompactedView
from penstock.wire import StreamDeclaration, decode

if TYPE_CHECKING:
    from penstock.log import Log
    from penstock.log.topics import TopicNames


class DeclaredStreams:
    """Declarations by IRI. Declared here means: the declaration is in every shard's log before anything written now."""

    def __init__(self, log: Log, names: TopicNames, timeout_s: float = 60.0) -> None:
        self._names = names
        self._view = CompactedView(log, [Partition(names.control)])
        self.by_iri: dict[str, StreamDeclaration] = {}
        self._keys: dict[bytes, str] = {}
        for key, message in self._view.catch_up(timeout_s).items():
            self._note(key, message.value)

    def by_topic(self) -> dict[str, StreamDeclaration]:
        """Return them by the topic of their events."""
        return {self._names.events(declaration.name): declaration for declaration in self.by_iri.values()}

    def refresh(self) -> bool:
        """Take in what has come; returns whether anything has changed."""
        messages = self._view.refresh()
        if not messages:
            return False
        before = dict(self.by_iri)
        for message in messages:
            if message.key is not None:
                self._note(message.key, message.value)
        return self.by_iri != before

    def _note(self, key: bytes, value: bytes | None) -> None:
        known = self._keys.pop(key, None)
        if known is not None:
            del self.by_iri[known]
        record = None if value is None else decode(value)
        if isinstance(record, StreamDeclaration) and record.publisher is None:
            self._keys[key] = record.iri
            self.by_iri[record.iri] = record

    def close(self) -> None:
        """Let go."""
        self._view.close()
