"""Standing queries that are beyond the planning limits (ADR 59)."""

from __future__ import annotations

_FROM = "REGISTER QUERY q AS\nSELECT * FROM NAMED STREAM <{iri}> [RANGE 1s STEP 1s] WHERE {{ {body} }}"
_BODIES = {
    "unions": ("max_query_tokens", " UNION ".join(["{ ?s ?p ?o }"] * 30_000)),
    "path": ("max_plan_depth", "?s " + "/".join(["<urn:p>"] * 20_000) + " ?o"),
}
NAMES = tuple(_BODIES)


def large_query(name: str, iri: str) -> tuple[str, tuple[str, str]]:
    """Return the text over a stream, and the limits of which one must be named: a busy machine may run out of time
    first. Whatever exceeds them is on the second line.
    """
    limit, body = _BODIES[name]
    return _FROM.format(iri=iri, body=body), (limit, "planning_timeout_s")
