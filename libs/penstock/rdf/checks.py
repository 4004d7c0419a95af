"""Checks of a document's text before and during parsing. They reject hostile input in linear time."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import DataError
from penstock.rdf.formats import Format

if TYPE_CHECKING:
    from penstock.rdf.parse_limits import ParseLimits

_DECLARATION = re.compile(rb"<!(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_OVERLAP = len(b"<!DOCTYPE") - 1
_HEAD_BYTES = 1 << 20
"""Maximum size of the JSON-LD documents that `check_triples` inspects for content. A larger document counts as a
document with content.
"""
_SCAN_BYTES = 1 << 18
_OPENING = (np.frombuffer(bytes(range(256)), np.uint8)[:, None] == np.frombuffer(b"{[", np.uint8)).any(axis=1)
_CLOSING = (np.frombuffer(bytes(range(256)), np.uint8)[:, None] == np.frombuffer(b"}]", np.uint8)).any(axis=1)


def has_declarations(text: bytes) -> bool:
    """Return whether an XML text contains a document type or entity declaration.

    Declarations in comments and CDATA sections count, too. Otherwise the scan would have to find the end of each
    comment exactly as the parser does.
    """
    return b"<!" in text and _DECLARATION.search(text) is not None


class DocumentCheck:
    """Checks a document block by block and raises DataError at the first violation.

    `declarations`: whether an XML document is allowed to have a document type declaration. `size`: the number of bytes
    that were checked so far.
    """

    def __init__(self, fmt: Format, limits: ParseLimits, *, declarations: bool) -> None:
        self._xml = fmt is Format.RDF_XML and not declarations
        self._depth = JsonDepth(limits.max_json_depth) if fmt is Format.JSON_LD else None
        self._tail = b""
        self._head: list[bytes] = []
        self.size = 0

    def feed(self, block: bytes) -> None:
        """Check the next block."""
        self.size += len(block)
        if self._xml:
            if has_declarations(self._tail + block):
                raise DataError("RDF/XML with a <!DOCTYPE> or <!ENTITY> declaration is refused")
            self._tail = block[-_OVERLAP:]
        if self._depth is not None:
            self._depth.feed(block)
            if self.size <= _HEAD_BYTES:
                self._head.append(block)

    def check_triples(self, triples: int) -> None:
        """Raise DataError if a JSON-LD document has content but yielded no triple."""
        if self._depth is None or triples or (self.size <= _HEAD_BYTES and _is_empty(b"".join(self._head))):
            return
        raise DataError(
            "the JSON document has no triple: a JSON document needs a context, "
            'an "@context" that maps its names to IRIs (JSON-LD)'
        )


class JsonDepth:
    """Tracks the nesting depth of a JSON text, which is given block by block. Raises DataError above `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._depth = 0
        self._brackets = 0  # opening brackets so far; up to the limit no scan is needed
        self._unscanned: list[bytes] = []
        self._waiting = 0
        self._in_string = False
        self._escaped = False

    def feed(self, block: bytes) -> None:
        """Scan the next block."""
        self._unscanned.append(block)
        self._waiting += len(block)
        self._brackets += block.count(b"{") + block.count(b"[")
        if self._brackets <= self._limit and self._waiting <= _HEAD_BYTES:
            return
        for waiting in self._unscanned:
            for first in range(0, len(waiting), _SCAN_BYTES):
                self._scan(waiting[first : first + _SCAN_BYTES])
        self._unscanned.clear()
        self._waiting = 0

    def _scan(self, text: bytes) -> None:
        if self._escaped:
            text = b"x" + text[1:]
        if b"\\" in text:
            text = text.replace(b"\\\\", b"xx").replace(b'\\"', b"xx")
        self._escaped = text.endswith(b"\\")
        characters = np.frombuffer(text, np.uint8)
        inside = (np.cumsum(characters == ord('"')) + self._in_string) & 1
        steps = (_OPENING[characters].astype(np.int64) - _CLOSING[characters]) * (1 - inside)
        depths = np.cumsum(steps) + self._depth
        if depths.max(initial=0) > self._limit:
            raise DataError(f"the JSON document is nested deeper than {self._limit} (max_json_depth)")
        self._depth = max(0, int(depths[-1]))
        self._in_string = bool(inside[-1])


def _is_empty(text: bytes) -> bool:
    """Return whether a JSON document has no content. It then has no text, only empty objects and arrays, or only a
    context.
    """
    try:
        return not text.strip() or _has_no_content(json.loads(text))
    except (ValueError, RecursionError):
        return False


def _has_no_content(value: object) -> bool:
    if isinstance(value, list):
        return all(_has_no_content(each) for each in value)
    if isinstance(value, dict):
        return all(name == "@context" or (name == "@graph" and _has_no_content(each)) for name, each in value.items())
    return False
