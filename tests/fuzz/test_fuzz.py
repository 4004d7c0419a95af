"""Short seeded fuzzing on every run, the corpus of found cases, and ten minutes of each in `make test-long`."""

from __future__ import annotations

import time

import pytest

from fuzz import documents, hostile_mappings, mappings, queries, triples


@pytest.mark.parametrize("path", sorted(queries.CORPUS.glob("*")), ids=lambda path: path.stem)
def test_found_query_texts_stay_harmless(path: object) -> None:
    text = path.read_text(encoding="utf-8", errors="surrogatepass")  # type: ignore[attr-defined]
    with queries.engine() as engine:
        assert queries.fault(text, engine) is None


@pytest.mark.parametrize("path", sorted(triples.CORPUS.glob("*")), ids=lambda path: path.stem)
def test_found_messages_stay_harmless(path: object) -> None:
    assert triples.fault(path.read_text(encoding="utf-8")) is None  # type: ignore[attr-defined]


def test_mutated_query_texts_are_taken_or_refused_clearly() -> None:
    tried, faults = queries.fuzz(0, 30, count=1500)
    assert not faults, "\n\n".join(faults[:3])
    assert tried > 200


def test_mutated_messages_are_read_as_pyoxigraph_reads_them() -> None:
    tried, faults = triples.fuzz(0, 20, count=1500)
    assert not faults, "\n\n".join(faults[:3])
    assert tried > 200


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ten_minutes_of_query_texts() -> None:
    _, faults = queries.fuzz(int(time.time()) << 20, 600)
    assert not faults, "\n\n".join(faults[:3])


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_ten_minutes_of_messages() -> None:
    _, faults = triples.fuzz(int(time.time()) << 20, 600)
    assert not faults, "\n\n".join(faults[:3])


def test_mutated_documents_are_read_or_refused_within_bounds() -> None:
    tried, faults = documents.fuzz(0, 30, count=300)
    assert not faults, "\n".join(faults[:3])
    assert tried > 20


def test_mutated_events_become_tuples_or_dead_letters() -> None:
    tried, faults = documents.fuzz_adaptor(1 << 20, 30, count=200)
    assert not faults, "\n".join(faults[:3])
    assert tried > 10


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_minutes_of_documents() -> None:
    _, faults = documents.fuzz(int(time.time()) << 20, 600)
    assert not faults, "\n".join(faults[:3])


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_minutes_of_events() -> None:
    _, faults = documents.fuzz_adaptor(int(time.time()) << 20, 600)
    assert not faults, "\n".join(faults[:3])


@pytest.mark.parametrize("shape", sorted(hostile_mappings.SHAPES))
def test_hostile_mappings_are_taken_or_refused_within_bounds(shape: str) -> None:
    for size in (10, 4_000, 20_000):
        assert mappings.fault(*hostile_mappings.SHAPES[shape](size)) is None, size


def test_mutated_mappings_are_taken_or_refused_within_bounds() -> None:
    tried, faults = mappings.fuzz(0, 30, count=300)
    assert not faults, "\n".join(faults[:3])
    assert tried > 20


@pytest.mark.long
@pytest.mark.parametrize("shape", sorted(hostile_mappings.SHAPES))
def test_very_large_mappings_are_taken_or_refused_within_bounds(shape: str) -> None:
    assert mappings.fault(*hostile_mappings.SHAPES[shape](100_000)) is None


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ten_minutes_of_mappings() -> None:
    _, faults = mappings.fuzz(int(time.time()) << 20, 600)
    assert not faults, "\n".join(faults[:3])
