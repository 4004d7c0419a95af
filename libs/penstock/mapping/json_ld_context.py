"""Mappings by a JSON-LD context. The context is declared once, and applies to JSON messages without a context."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.errors import DataError
from penstock.mapping.message_records import RealNumber
from penstock.rdf.formats import Format
from penstock.rdf.parsing import Converted

if TYPE_CHECKING:
    from penstock.mapping.mapping_limits import MappingLimits
    from penstock.mapping.message_records import SourceMessage

_MAX_DEPTH = 64


class ContextMapping:
    """Maps JSON values by a context. DataError if the context is invalid or names a remote context. Contexts are never
    fetched.
    """

    def __init__(self, context: Any, base: str | None, limits: MappingLimits) -> None:
        _check_local(context, 0)
        if base is not None:
            context = [{"@base": base}, *(context if isinstance(context, list) else [context])]
        text = json.dumps(context)
        if len(text) > limits.max_mapping_bytes:
            raise DataError(f"mapping: the context exceeds max_mapping_bytes ({limits.max_mapping_bytes})")
        self._head = b'{"@context":%b,"@graph":[' % text.encode()
        self._limits = limits
        probe = self._head + b'{"@id":"urn:x-penstock:probe","@type":"urn:x-penstock:probe"}]}'
        try:
            Converted.of(probe, Format.JSON_LD, limits.max_mapping_bytes)
        except DataError as error:
            if "no triple" not in str(error):
                raise DataError(f"mapping: the context: {error}") from error

    def triples(self, value: Any, _: SourceMessage, size: int, __: str = "") -> bytes:
        """Return the triples of a JSON value. DataError if the value is not JSON-LD with this context."""
        if not isinstance(value, (dict, list)):
            raise DataError("the message is not a JSON object")
        text = self._head + json.dumps(_with_numbers(value)).encode() + b"]}"
        most = self._limits.expanded_bytes(size)
        made = Converted.of(text, Format.JSON_LD, most)
        if made is None:
            raise DataError("the triples of the message exceed the limits expansion_mib and expansion_factor")
        return b"".join(made.parts)


def _with_numbers(value: Any) -> Any:
    """Return the value with each RealNumber (the text of a number) converted to float."""
    if type(value) is RealNumber:
        return float(value)
    if type(value) is dict:
        return {name: _with_numbers(each) for name, each in value.items()}
    return [_with_numbers(each) for each in value] if type(value) is list else value


def _check_local(context: Any, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise DataError(f"mapping: the context is nested deeper than {_MAX_DEPTH}")
    if isinstance(context, str) and depth == 0:
        raise DataError(
            f"mapping: the context {context!r:.80} is remote: contexts are not fetched; declare its content"
        )
    if isinstance(context, list):
        for each in context:
            _check_local(each, 0 if depth == 0 else depth + 1)
    elif isinstance(context, dict):
        if "@import" in context:
            raise DataError("mapping: the context has @import: contexts are not fetched")
        for value in context.values():
            if isinstance(value, dict) and "@context" in value:
                _check_local(value["@context"], 0)
    elif context is not None and depth == 0:
        raise DataError(f"mapping: a context is an object or a list of objects, not {context!r:.60}")
