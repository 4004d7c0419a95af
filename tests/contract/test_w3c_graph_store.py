"""The W3C suite for the SPARQL 1.1 Graph Store HTTP Protocol, against the server of `penstock serve`."""

from __future__ import annotations

import pytest

from support import w3c_http

EXCHANGES = [
    pytest.param(exchange, id=f"{kind}: {exchange.name}")
    for kind in ("direct", "indirect")
    for exchange in w3c_http.exchanges(f"graph-store-protocol/manifest-{kind}.ttl")
]
PATHS = {"/gsp": "/rdf-graphs"}


def test_the_suite_is_whole():
    assert len(EXCHANGES) == 4 + 9


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_requests_have_the_expected_responses(exchange):
    with w3c_http.serving() as (_, url):
        wrong = w3c_http.run(exchange, url, PATHS)
    assert wrong is None, f"{wrong.request.method} {wrong.request.url}: {wrong.status_code} {wrong.text}"
