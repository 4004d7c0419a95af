"""Kinds of random cases: most are small and dense, some are wide, long or crowded to reach the structures' corners."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Profile:
    """What a case is drawn from. Lists are choices of equal weight.

    `strangers`: how many nodes there are beyond the few that queries name; `siblings`: queries of one template;
    `connected`: patterns that hang together and no path closures, so that a wide case's answers stay finite;
    `computes`: IRIs and long texts, among them some that the data has, are computed and joined with it;
    `scoping`: bodies of property/scoping.py, and data with sizes and names for them.
    """

    name: str
    span_ms: int = 3000
    batches_ms: tuple[int, ...] = (50, 70, 100, 100, 130, 250)
    pauses_ms: tuple[int, ...] = (0, 1, 10, 25, 40, 60, 100, 220)
    steps_ms: tuple[int, ...] = (100, 150, 200, 300, 500, 700)
    ranges_ms: tuple[int, ...] = (330, 1000, 1500, 2000)
    counts: tuple[int, ...] = (1, 2, 3, 4, 5)
    event_triples: tuple[int, ...] = (1, 2, 3, 4, 5)
    stored_triples: tuple[int, int] = (3, 12)
    actions: tuple[int, int] = (20, 60)
    queries: tuple[int, ...] = (1, 2, 2, 3)
    siblings: tuple[int, int] = (1, 2)
    sibling_share: float = 0.35
    strangers: int = 0
    connected: bool = False
    derived_share: float = 0.15
    computes: bool = False
    scoping: bool = False


SMALL = Profile("small")
WIDE = Profile(
    "wide",
    steps_ms=(300, 500, 700),
    counts=(1, 20, 300),
    event_triples=(1, 20, 60, 100),
    stored_triples=(50, 600),
    actions=(20, 40),
    queries=(1, 2),
    strangers=300,
    connected=True,
)
LONG = Profile(
    "long",
    span_ms=20_000,
    batches_ms=(5, 10, 20, 33),
    pauses_ms=(5, 20, 50, 100, 300),
    steps_ms=(400, 700, 1500, 2100),
    ranges_ms=(20, 900, 3000, 5000),
    actions=(150, 250),
    queries=(1, 2),
    strangers=20,
)
CROWDED = Profile(
    "crowded",
    steps_ms=(500, 700, 1000),
    event_triples=(1, 4, 12),
    actions=(15, 30),
    queries=(1,),
    siblings=(20, 120),
    sibling_share=1.0,
    strangers=6,
    derived_share=0.0,
)
PROFILES = {profile.name: profile for profile in (SMALL, WIDE, LONG, CROWDED)}


def of(seed: int) -> Profile:
    """Return the profile of a case: of every thirty, one is wide, one long and one crowded."""
    return {7: WIDE, 17: LONG, 27: CROWDED}.get(seed % 30, SMALL)
