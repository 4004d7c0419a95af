"""The keys of terms in the dictionary topic."""

from __future__ import annotations

from hashlib import blake2b
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.core._native import TermTuple

_KEY_BYTES = 32


def record_key(term: TermTuple) -> bytes:
    """Return the key of a term's record. The key is a hash of the term. Different terms must have different keys,
    because compaction retains only one record per key.
    """
    digest = blake2b(digest_size=_KEY_BYTES)
    for part in term:
        data = str(part).encode()
        digest.update(b"%d:" % len(data))
        digest.update(data)
    return digest.digest()
