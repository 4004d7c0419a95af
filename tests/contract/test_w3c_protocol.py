"""The W3C suite for the SPARQL 1.1 Protocol, against the server of `penstock serve`."""

from __future__ import annotations

import pytest

from support import shared, w3c_http

EXCHANGES = w3c_http.exchanges("protocol/manifest.ttl")


def test_the_suite_is_whole():
    assert len(EXCHANGES) == 34


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_requests_have_the_expected_responses(exchange):
    with w3c_http.serving() as (engine, url):
        for file, graph in exchange.graphs:
            path = shared.SHARED / "suites/w3c-http/protocol" / file.rpartition("/")[2]
            engine.load(path, graph=graph)
        wrong = w3c_http.run(exchange, url, {"/sparql/": "/sparql"})
    assert wrong is None, f"{wrong.request.method} {wrong.request.url}: {wrong.status_code} {wrong.text}"
