"""Limits on parsing documents in the formats that pyoxigraph parses: Turtle, TriG, RDF/XML and JSON-LD (ADR 52).

N-Triples and N-Quads need no such limits: the native reader is linear in time and memory and limits the size of each
term.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

_MIB = 1 << 20


@dataclass(frozen=True, slots=True)
class ParseLimits:
    """Resource limits for one document.

    - `small_document_bytes`: maximum size of a document that is parsed in the calling process. Larger documents are
      parsed in a parser process, and so are RDF/XML documents with a document type or entity declaration.
    - `max_json_depth`: maximum nesting depth of a JSON-LD document.
    - `parser_memory_mb`: address space of a parser process, in MB.
    - `parser_cpu_s`, `parser_cpu_s_per_mib`: maximum CPU time for a document, in seconds. This limit is `parser_cpu_s`
      plus `parser_cpu_s_per_mib` for each MiB of input.
    - `expansion_mib`, `expansion_factor`: maximum size of a document's statements as N-Quads. This limit is
      `expansion_mib` plus `expansion_factor` times the input size.
    """

    small_document_bytes: int = 8 << 10
    max_json_depth: int = 128
    parser_memory_mb: int = 1024
    parser_cpu_s: float = 2.0
    parser_cpu_s_per_mib: float = 0.5
    expansion_mib: int = 256
    expansion_factor: int = 16

    def cpu_s(self, size: int) -> float:
        """Return the CPU time in seconds allowed for a document of `size` bytes."""
        return self.parser_cpu_s + self.parser_cpu_s_per_mib * size / _MIB

    def expanded_bytes(self, size: int) -> int:
        """Return the maximum size in bytes of the N-Quads of a document of `size` bytes."""
        return self.expansion_mib * _MIB + self.expansion_factor * size

    @classmethod
    def of_environment(cls) -> ParseLimits:
        """Return the default limits. The environment variable PENSTOCK_PARSER_MEMORY_MB overrides
        `parser_memory_mb`.
        """
        given = os.environ.get("PENSTOCK_PARSER_MEMORY_MB", "")
        return cls(parser_memory_mb=int(given)) if given.isdecimal() and int(given) else cls()


PARSE_LIMITS = ParseLimits.of_environment()
