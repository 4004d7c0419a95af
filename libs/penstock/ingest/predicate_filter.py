"""The predicate filter of adaptors. It discards tuples whose timing predicates occur in no query (docs/semantics.md §1;
ADR 45).

The filter never discards timeless tuples, because stores absorb these tuples. If a stream has retention, the filter
discards no tuples of this stream.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.rdf.terms import IRI
from penstock.wire import Tuples

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.wire import StreamDeclaration, StreamPredicates


def versions(
    streams: Mapping[str, StreamDeclaration], filters: Mapping[str, StreamPredicates], topics: Sequence[str]
) -> list[int]:
    """Return the version of the predicate filter for each events topic. The version is 0 if the stream has no filter.
    Topics that belong to no stream are skipped.
    """
    records = (filters.get(streams[topic].iri) for topic in topics if topic in streams)
    return [0 if record is None else record.version for record in records]


def discards(stream: StreamDeclaration, passed: StreamPredicates | None) -> bool:
    """Return whether a filter can discard tuples of a stream. `passed`: the filter of the stream. None: there is no
    filter.
    """
    if passed is None or passed.all_since is not None or not stream.may_discard:
        return False
    return stream.timing_all or not set(stream.timing) <= set(passed.predicates)


def passing_generation(stream: StreamDeclaration, passed: StreamPredicates | None) -> int:
    """Return the generation in which the terms of a stream's timing tuples are requested. 0 if these terms are
    permanent (ADR 50).
    """
    return passed.generation if passed is not None and stream.may_discard else 0


def marker(stream: StreamDeclaration, partition: int, version: int) -> Tuples:
    """Return a record without tuples, as a marker in a partition. The marker states that all later records of the
    partition were filtered with this version of the filter or with a newer version.
    """
    numbers, ids = np.empty(0, np.int64), np.empty(0, np.uint64)
    return Tuples(stream.iri, partition, numbers, numbers, numbers, ids, ids, ids, None, version)


class PredicateFilter:
    """The filter of one stream. The predicates of tuples are ids of `dictionary`. `passed`: the record with the timing
    predicates whose tuples are retained. None: all tuples are retained. Tuples with timeless predicates are always
    retained. `version`: the version of the filter, or 0 if all tuples are retained and all terms are permanent.

    `transient`: whether the adaptor can request transient terms. Terms are transient only if the filter has a
    generation (ADR 50).
    """

    def __init__(
        self,
        dictionary: native.Dictionary,
        stream: StreamDeclaration,
        passed: StreamPredicates | None,
        *,
        transient: bool = False,
    ) -> None:
        self._open = passed is None or not discards(stream, passed)
        self._passes = transient and passing_generation(stream, passed) > 0
        self.version = 0 if passed is None or (self._open and not self._passes) else passed.version
        every = stream.timing_all
        timing = [] if every or not self._passes else [dictionary.intern(IRI, iri) for iri in sorted(stream.timing)]
        self._timing: Ids | None = None if every else np.array(timing, np.uint64)
        if self._open or passed is None:
            return
        named = set(passed.predicates)
        self._among = stream.timing_all  # True: tuples with these predicates are retained; False: they are discarded
        listed = named if stream.timing_all else set(stream.timing) - named
        self._ids: Ids = np.array([dictionary.intern(IRI, iri) for iri in sorted(listed)], np.uint64)

    def passing(self, predicates: Ids) -> np.ndarray:
        """Return a mask of the tuples whose subjects and objects can be transient terms."""
        if self._passes and self._timing is not None:
            return np.isin(predicates, self._timing)
        return np.full(len(predicates), self._passes)

    def chosen(self, predicates: Ids) -> np.ndarray | None:
        """Return a mask of the retained tuples. None if all tuples are retained."""
        if self._open:
            return None
        mask = np.isin(predicates, self._ids, invert=not self._among)
        return None if mask.all() else mask
