"""The mapping of the records of a file, in chunks of whole records."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from penstock.core._native import BlankScope, parse_nquads
from penstock.errors import DataError
from penstock.mapping.mapping_limits import FILE_LIMITS
from penstock.mapping.stream_mapping import StreamMapping
from penstock.rdf.parsing import Quads

if TYPE_CHECKING:
    from penstock.core._native import Dictionary


class DataFormat(Enum):
    """A format of data files that mappings read. A row of a Parquet file is mapped as a line of NDJSON."""

    JSON = "json"
    NDJSON = "ndjson"
    CSV = "csv"
    PARQUET = "parquet"

    @classmethod
    def of(cls, name: str, settings: dict[str, Any]) -> DataFormat:
        """Return the format of a file: the `format` of a mapping's settings, or the format that the file name implies.
        Endings for compression (`.gz`) are ignored. DataError if the format is not one of this class, or if the file
        name implies no format.
        """
        known = ", ".join(each.value for each in cls)
        if "format" in settings:
            given = next((each for each in cls if each.value == settings["format"]), None)
            if given is None:
                raise DataError(f"mapping: the `format` of a file is one of {known}, not {settings['format']!r:.60}")
            return given
        plain = name.lower().removesuffix(".gz")
        found = next((each for ending, each in _ENDINGS.items() if plain.endswith(ending)), None)
        if found is None:
            raise DataError(f"{name}: the file name does not imply a format; pass one of {known}")
        return found


_ENDINGS: Final = {
    ".json": DataFormat.JSON,
    ".ndjson": DataFormat.NDJSON,
    ".jsonl": DataFormat.NDJSON,
    ".csv": DataFormat.CSV,
    ".parquet": DataFormat.PARQUET,
}


class FileMapping:
    """The compiled mapping of files of one format. `settings`: see `StreamMapping`. The setting `time` has no effect,
    because triples of files have no time.

    A record without triples is skipped. In RML, a blank node template denotes the same node wherever the template gives
    the same text within a file. In the other mappings, no two records share a blank node.
    """

    def __init__(self, settings: dict[str, Any], format: DataFormat) -> None:  # noqa: A002 - as in the settings
        used = {name: value for name, value in settings.items() if name != "time"}
        used["format"] = "ndjson" if format is DataFormat.PARQUET else format.value
        self.format = format
        self._mapping = StreamMapping(used, FILE_LIMITS, of_file=True)
        self._shares_blanks = "rml" in settings

    def triples(
        self, dictionary: Dictionary, text: bytes, scope: BlankScope, *, chunk: str = "", lines_before: int = 0
    ) -> Quads:
        """Return the triples of a text of whole records.

        `scope`: the scope of the file's blank nodes. `chunk`: a text that differs for each chunk of a file. This text
        is a part of the labels of new blank nodes. `lines_before`: the number of lines of the file before `text`. Error
        messages count from there. The header of a CSV text is not counted. DataError, with the line or the record, if a
        record is invalid.
        """
        batch = self._mapping.batch([(None, text)], len(text))
        if batch is None or batch.declined:
            return self._interpreted(dictionary, text, scope, chunk, lines_before)
        subjects, predicates, objects = batch.intern(dictionary, scope if self._shares_blanks else None)
        return Quads(subjects, predicates, objects, np.zeros(len(subjects), np.uint64))

    def _interpreted(
        self, dictionary: Dictionary, text: bytes, scope: BlankScope, chunk: str, lines_before: int
    ) -> Quads:
        made = self._mapping.of_records(text, chunk, lines_before)
        if self._shares_blanks:
            return Quads.of(parse_nquads(dictionary, b"".join(made), quads=False, scope=scope))
        parts = [Quads.of(parse_nquads(dictionary, triples, quads=False)) for triples in made]
        return Quads.joined(parts)
