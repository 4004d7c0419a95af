"""The texts that an engine has parsed and prepared (docs/adr/0088-prepared-texts.md)."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, TypeAlias

from cachetools import LRUCache

from penstock.engine.oneshot.normalization import normalize
from penstock.query.parser import parse
from penstock.query.prepared import BoundQuery, BoundStanding, BoundUpdate, PreparedText, prepare

if TYPE_CHECKING:
    from penstock.engine.limits import Limits
    from penstock.query.ir import Statement
    from penstock.query.normalized_text import Normalized

    _Pattern: TypeAlias = tuple[str, str | None, bool]
    """`Normalized.pattern`, a base, and whether the text belongs to a standing query."""

    _Key: TypeAlias = tuple[str, str | None, bool, tuple[str, ...]]
    """A `_Pattern`, and the fixed constants."""

CACHED_TEXT = 1 << 16
"""Maximum length of a cached text, in characters."""


class Texts:
    """A cache of parsed texts, and of prepared texts. A text counts as prepared if it differs from an earlier text only
    in parameters. Long texts are not cached. Any thread can use the cache.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._cache: LRUCache[tuple[str, str | None], Statement] = LRUCache(limits.text_cache)
        self._fixed: LRUCache[_Pattern, tuple[int, ...] | None] = LRUCache(limits.text_cache)
        self._prepared: LRUCache[_Key, PreparedText | None] = LRUCache(limits.text_cache)
        self._bound: LRUCache[tuple[str, str | None], None] = LRUCache(limits.text_cache)  # texts of bound queries
        self._caching = Lock()

    def parse(self, text: str, base: str | None, *, accepted: bool = False) -> Statement:
        """Return the parsed statement. QueryError if the text is invalid. `accepted`: whether the text was accepted
        before, at its registration. Parsing of an accepted text has no time limit.
        """
        with self._caching:
            found = self._cache.get((text, base))
        if found is not None:
            return found
        statement = parse(text, base, limits=self._limits, accepted=accepted)
        if len(text) <= CACHED_TEXT:
            with self._caching:
                self._cache[text, base] = statement
        return statement

    def bound_query(self, text: str, base: str | None) -> BoundQuery | None:
        """Return the prepared query of a one-shot query's text, with the constants of the text. The result is None if
        the text is not prepared. The result is also None if the same text was queried before, because a plan for
        exactly this text is faster.
        """
        with self._caching:
            if (text, base) in self._cache or (text, base) in self._bound:
                return None
        bound = self._bind(text, base)
        if not isinstance(bound, BoundQuery):
            return None
        with self._caching:
            self._bound[text, base] = None
        return bound

    def bound_update(self, text: str, base: str | None) -> BoundUpdate | None:
        """Return the prepared update of a text. The patterns of this update are bound queries. The result is None if
        the text is not prepared.
        """
        bound = self._bind(text, base)
        return bound if isinstance(bound, BoundUpdate) else None

    def bound_standing(self, text: str, base: str | None) -> BoundStanding | None:
        """Return a standing query's text as a bound query. The result is None if the text is not prepared."""
        if len(text) > self._limits.max_text_bytes >> 2:  # a character has at most four bytes
            return None
        bound = self._bind(text, base, registered=True)
        return bound if isinstance(bound, BoundStanding) else None

    def _bind(
        self, text: str, base: str | None, *, registered: bool = False
    ) -> BoundQuery | BoundStanding | BoundUpdate | None:
        normalized = normalize(text, registered=registered)
        if normalized is None:
            return None
        pattern = normalized.pattern, base, registered
        with self._caching:
            try:
                fixed = self._fixed[pattern]
            except KeyError:
                self._fixed[pattern] = None  # the first text of the pattern
                return None
            if fixed is not None:
                constants = normalized.constants
                key = *pattern, tuple([constants[number] for number in fixed])
                try:
                    found = self._prepared[key]
                except KeyError:
                    self._prepared[key] = None  # the first text with these fixed constants
                    return None
                if found is not None:
                    return found.bind(text, constants, normalized.name)
        prepared = self._prepare(text, base, normalized, registered=registered)
        return (
            prepared.bind(text, normalized.constants, normalized.name) if registered and prepared is not None else None
        )

    def _prepare(self, text: str, base: str | None, normalized: Normalized, *, registered: bool) -> PreparedText | None:
        """Prepare a text. QueryError if the text is invalid."""
        prepared = prepare(normalized, self.parse(text, base), registered=registered)
        if prepared is None:
            return None
        pattern = normalized.pattern, base, registered
        fixed = tuple([normalized.constants[number] for number in prepared.fixed])
        with self._caching:
            if self._fixed.get(pattern) in (None, prepared.fixed):
                self._fixed[pattern] = prepared.fixed
                self._prepared[*pattern, fixed] = prepared
        return prepared
