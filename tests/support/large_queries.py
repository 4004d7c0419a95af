"""Continuous queries that exceed the planning limits (ADR 59)."""

from __future__ import annotations

_FROM = "REGISTER QUERY q AS\nSELECT * FROM NAMED STREAM <{iri}> [RANGE 1s STEP 1s] WHERE {{ {body} }}"
_BODIES = {
    "unions": ("max_query_tokens", " UNION ".join(["{ ?s ?p ?o }"] * 30_000)),
    "path": ("max_plan_depth", "?s " + "/".join(["<urn:p>"] * 20_000) + " ?o"),
}
NAMES = tuple(_BODIES)


def large_query(name: str, iri: str) -> tuple[str, tuple[str, str]]:
    """Return the text over a stream, and two limits: the error must name one of them (on a busy machine, the timeout
    may come first). The part of the text that exceeds the limit is on the second line.
    """
    limit, body = _BODIES[name]
    return _FROM.format(iri=iri, body=body), (limit, "planning_timeout_s")
