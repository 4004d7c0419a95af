"""RDF serialisation formats, and their look-up by name, media type or file name extension."""

from __future__ import annotations

from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING

from penstock.errors import DataError

if TYPE_CHECKING:
    import os


class Format(Enum):
    """An RDF serialisation format. The value is the format's name in the public API (docs/api.md)."""

    TURTLE = "turtle"
    N_TRIPLES = "nt"
    N_QUADS = "nquads"
    TRIG = "trig"
    RDF_XML = "xml"
    JSON_LD = "json-ld"

    @property
    def is_native(self) -> bool:
        """Whether the native reader parses the format. It parses N-Triples and N-Quads."""
        return self is Format.N_TRIPLES or self is Format.N_QUADS

    @property
    def media_type(self) -> str:
        """The format's registered media type."""
        return _MEDIA_TYPES[self]

    @classmethod
    def named(cls, name: str) -> Format:
        """Return the format with a name, file name extension or media type (parameters are ignored). DataError if no
        format matches.
        """
        found = _NAMES.get(name.partition(";")[0].strip().lower())
        if found is None:
            raise DataError(f"unknown RDF format '{name}'; known are {', '.join(f.value for f in cls)}")
        return found

    @classmethod
    def of_path(cls, path: str | os.PathLike[str]) -> Format:
        """Return the format that a file name's extension implies, ignoring `.gz`. DataError if the extension is
        unknown.
        """
        endings = [ending.lower() for ending in PurePath(path).suffixes]
        if endings and endings[-1] == ".gz":
            endings.pop()
        found = _ENDINGS.get(endings[-1]) if endings else None
        if found is None:
            raise DataError(f"{path}: the file name does not imply an RDF format; pass format=…")
        return found


_ENDINGS = {
    ".ttl": Format.TURTLE,
    ".turtle": Format.TURTLE,
    ".n3": Format.TURTLE,  # files named N3 are nearly always Turtle
    ".nt": Format.N_TRIPLES,
    ".ntriples": Format.N_TRIPLES,
    ".nq": Format.N_QUADS,
    ".nquads": Format.N_QUADS,
    ".trig": Format.TRIG,
    ".rdf": Format.RDF_XML,
    ".xml": Format.RDF_XML,
    ".owl": Format.RDF_XML,
    ".jsonld": Format.JSON_LD,
    ".json": Format.JSON_LD,
}

_MEDIA_TYPES = {
    Format.TURTLE: "text/turtle",
    Format.N_TRIPLES: "application/n-triples",
    Format.N_QUADS: "application/n-quads",
    Format.TRIG: "application/trig",
    Format.RDF_XML: "application/rdf+xml",
    Format.JSON_LD: "application/ld+json",
}

_NAMES = {
    **{fmt.value: fmt for fmt in Format},
    **{media: fmt for fmt, media in _MEDIA_TYPES.items()},
    **{ending[1:]: fmt for ending, fmt in _ENDINGS.items()},
    "n-triples": Format.N_TRIPLES,
    "n-quads": Format.N_QUADS,
    "rdf/xml": Format.RDF_XML,
    "rdf-xml": Format.RDF_XML,
    "rdfxml": Format.RDF_XML,
    "text/plain": Format.N_TRIPLES,  # the media type of RDF 2004
    "application/x-turtle": Format.TURTLE,
    "text/n3": Format.TURTLE,
    "application/json": Format.JSON_LD,
}
