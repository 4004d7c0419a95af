"""Checks of events that remove triples. A stream can remove only triples that it could have stored (docs/semantics.md
§1).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.intake.events import BadEvent
from penstock.rdf.terms import IRI

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from penstock.core import _native as native
    from penstock.engine.intake.declaration import Timing
    from penstock.engine.intake.events import Events

_REASON = "it removes a triple of a timing predicate{}: such triples are in windows only, and leave them by expiry"


def checked_removals(events: Events, timing: Timing, dictionary: native.Dictionary) -> tuple[Events, list[BadEvent]]:
    """Return the valid events and the invalid events. An event is invalid if the event removes a triple with a timing
    predicate. `timing` contains the timing predicates of the stream.
    """
    if events.removed is None:
        return events, []
    assert events.counts is not None, "parsed events have counts"
    refused = events.removed == 1
    names: dict[int, str] = {}
    if timing != "all":
        names = {dictionary.find(IRI, iri): f" (<{iri}>)" for iri in timing}
        refused &= np.isin(events.p, list(names))
    if not refused.any():
        return events, []
    numbers = np.repeat(np.arange(len(events.times)), events.counts)
    stays = np.ones(len(events.times), np.bool_)
    stays[numbers[refused]] = False
    places, rows = np.unique(numbers[refused], return_index=True)
    bad = [
        BadEvent(int(events.times[i]), events.original(i), _REASON.format(names.get(predicate, "")), i)
        for i, predicate in zip(places.tolist(), events.p[refused][rows].tolist(), strict=True)
    ]
    return _chosen(events, stays), bad


def _chosen(events: Events, stays: NDArray[np.bool_]) -> Events:
    rows = events.of_triples(stays)
    assert events.counts is not None
    assert events.removed is not None
    return replace(
        events,
        times=events.times[stays],
        counts=events.counts[stays],
        s=events.s[rows],
        p=events.p[rows],
        o=events.o[rows],
        originals=[events.originals[i] for i in np.flatnonzero(stays).tolist()],
        removed=events.removed[rows],
    )
