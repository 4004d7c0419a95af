"""The index from streams to the query groups that read them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from penstock.engine.intake.streams import LiveStream
    from penstock.engine.standing.groups import Group


class Readers:
    """The query groups that read each stream of an engine. Callers must hold the engine's lock."""

    def __init__(self) -> None:
        self._groups: dict[LiveStream, dict[Group, None]] = {}

    def add(self, group: Group) -> None:
        """Add a group as a reader of each of its streams."""
        for stream in group.streams:
            self._groups.setdefault(stream, {})[group] = None

    def remove(self, group: Group) -> None:
        """Remove a group from the readers of its streams."""
        for stream in group.streams:
            groups = self._groups[stream]
            del groups[group]
            if not groups:
                del self._groups[stream]

    def of(self, stream: LiveStream) -> Collection[Group]:
        """Return the groups that read a stream, in the order in which they were added."""
        return self._groups.get(stream, {})
