"""Normalization of texts (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

from penstock.core import _native as native
from penstock.query.normalized_text import NAME, Normalized, split_name

LONGEST = 1 << 12
"""Maximum length of a normalized text, in characters."""


def normalize(text: str, *, registered: bool = False) -> Normalized | None:
    """Return the normalized form of a text. The result is None if the text has no constants, or cannot be normalized
    (`penstock.query.normalized_text`). `registered`: whether the text belongs to a standing query.
    """
    if len(text) > LONGEST:
        return None
    head, name, rest = split_name(text) if registered else ("", None, text)
    found = native.normalized(rest)
    if found is None:
        return None
    pattern, constants = found
    return Normalized(pattern if name is None else f"{head}\x00{NAME}{pattern}", constants, name)
