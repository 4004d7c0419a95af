"""The W3C suite for the SPARQL 1.1 Protocol, against the server of `penstock serve`."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from support import shared, w3c_http

EXCHANGES = w3c_http.exchanges("protocol/manifest.ttl")
REMOVES = "the test removes triples, and the stored graph only grows"
MISSES = {  # test -> why it fails
    "update_dataset_default_graph": REMOVES,
    "update_dataset_default_graphs": REMOVES,
    "update_dataset_named_graphs": REMOVES,
    "update_dataset_full": REMOVES,
    "update_post_form": REMOVES,
    "update_post_direct": REMOVES,
    "update_base_uri": REMOVES,
}


def test_the_suite_is_whole():
    assert len(EXCHANGES) == 34
    assert MISSES.keys() <= {exchange.name for exchange in EXCHANGES}


@pytest.mark.parametrize(
    "exchange", [e for e in EXCHANGES if len(e.steps) > 1 and e.name in MISSES], ids=lambda e: e.name
)
def test_what_follows_the_removal_is_as_expected(exchange):
    """A fresh engine has nothing to remove, so that the operation is left out."""
    update, *rest = exchange.steps
    adding = replace(update, body=re.sub(rb"(CLEAR|DROP)[^;]*;", b"", update.body, count=1))
    assert adding.body != update.body
    with w3c_http.serving() as (_, url):
        wrong = w3c_http.run(replace(exchange, steps=(adding, *rest)), url, {"/sparql/": "/sparql"})
    assert wrong is None, f"{wrong.request.method} {wrong.request.url}: {wrong.status_code} {wrong.text}"


@pytest.mark.parametrize("exchange", EXCHANGES, ids=lambda exchange: exchange.name)
def test_requests_have_the_expected_responses(exchange):
    with w3c_http.serving() as (engine, url):
        for file, graph in exchange.graphs:
            path = shared.SHARED / "suites/w3c-http/protocol" / file.rpartition("/")[2]
            engine.load(path, graph=graph)
        wrong = w3c_http.run(exchange, url, {"/sparql/": "/sparql"})
    if wrong is not None and exchange.name in MISSES and "only grows" in wrong.text:
        pytest.xfail(MISSES[exchange.name])
    assert wrong is None, f"{wrong.request.method} {wrong.request.url}: {wrong.status_code} {wrong.text}"
