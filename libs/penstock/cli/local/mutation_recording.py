"""Recorded mutations of entities. The files have a JSON object per line, in the format of Wikidata's mutation
stream.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.cli.local.recording import Recording
from penstock.errors import DataError
from penstock.rdf.entity_mutations import MutationDecoder
from penstock.rdf.patches import PATCH

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.cli.local.recording import Event


@dataclass(frozen=True, slots=True)
class MutationRecording(Recording):
    """A stream and the file with its mutations."""

    @property
    def format(self) -> str:
        """The format of the events."""
        return PATCH

    def events(self) -> Iterator[Event]:
        """Yield (time in ms, RDF Patch) for each mutation, in file order."""
        decoder = MutationDecoder()
        with self.open() as lines:
            for number, line in enumerate(lines, 1):
                if not line.strip():
                    continue
                try:
                    mutation = decoder.decode(line)
                except DataError as error:
                    raise DataError(f"{self.path}, line {number}: {error}") from error
                yield mutation.time_ms, mutation.patch
