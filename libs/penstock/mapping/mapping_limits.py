"""Limits on mappings, and on the size of the triples of one message."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MappingLimits:
    """Limits on a mapping, and on the processing of one message. Errors contain the name of the limit.

    - `max_json_depth`: maximum nesting depth of a JSON message.
    - `max_values`: maximum number of values of one path. The same limit applies to the number of events of a message,
      and to the number of combinations of values in one template.
    - `max_joined`: maximum number of pairs of records that the joins of a mapping find.
    - `expansion_mib`, `expansion_factor`: maximum size of the triples of a message as N-Triples. This maximum is
      `expansion_mib` plus `expansion_factor` times the size of the message.
    - `max_mapping_bytes`: maximum size of the text of a mapping.
    - `max_terms`: maximum number of term maps in a mapping.

    The following limits are for messages in a binary format.

    - `decoded_kib`, `decoded_factor`: maximum size of a message as JSON. This maximum is `decoded_kib` plus
      `decoded_factor` times the size of the message.
    - `max_schema_bytes`: maximum size of a schema as text.
    - `max_schema_types`: maximum number of types in a schema.
    - `max_schemas`: maximum number of registry schemas in the cache of a process.
    """

    max_json_depth: int = 128
    max_values: int = 100_000
    max_joined: int = 1_000_000
    expansion_mib: int = 16
    expansion_factor: int = 64
    max_mapping_bytes: int = 1 << 20
    max_terms: int = 10_000
    decoded_kib: int = 64
    decoded_factor: int = 256
    max_schema_bytes: int = 1 << 20
    max_schema_types: int = 10_000
    max_schemas: int = 1_000

    def expanded_bytes(self, size: int) -> int:
        """Return the maximum size of the triples of a message of `size` bytes."""
        return (self.expansion_mib << 20) + self.expansion_factor * size


MAPPING_LIMITS = MappingLimits()
FILE_LIMITS = MappingLimits(
    max_values=100_000_000, max_joined=100_000_000, expansion_mib=1 << 20, expansion_factor=1 << 10
)
"""Limits for files that a user maps by name. They are so high that the memory of the machine is the effective limit."""
