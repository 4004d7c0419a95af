"""docs/semantics.md §2 and §6: late, refused and bad input; limits; what survives a restart."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
import rdflib

import penstock
from support.brief import PREFIX, S, T, nt
from support.systems import EngineSystem

if TYPE_CHECKING:
    from pathlib import Path

W = "[RANGE 1s STEP 1s]"
TEXT = f"REGISTER QUERY q AS {PREFIX} SELECT ?s FROM STREAM <{S}> {W} WHERE {{ ?s :p ?o }}"


@pytest.fixture
def engine() -> Any:
    with penstock.Engine() as made:
        made.declare_stream(S)
        yield made


def subjects(evaluation: Any) -> list[str]:
    return sorted(str(row["s"]).removeprefix("urn:x:") for row in evaluation.answer)


def test_a_bad_event_is_rejected_whole_stored_as_a_dead_letter_and_moves_nothing(engine: Any) -> None:
    query = engine.register(TEXT)
    engine.push(S, nt("a p b"), timestamp=100)
    bad = nt("half p b") + "\n<urn:x:half> <urn:x:p> oops .\n"
    with pytest.raises(penstock.DataError):
        engine.push(S, bad, timestamp=5000)
    letters = engine.dead_letters()
    assert len(letters) == 1
    assert engine.dead_letters() == []
    assert list(query.poll()) == []
    engine.advance(S, 1000)
    assert [subjects(e) for e in query.poll()] == [["a"]]


def test_many_events_go_on_after_a_bad_one(engine: Any) -> None:
    query = engine.register(TEXT)
    engine.push_events(S, [(100, nt("a p b")), (200, "nonsense"), (300, nt("c p b"))])
    engine.advance(S, 1000)
    assert [subjects(e) for e in query.poll()] == [["a", "c"]]
    assert len(engine.dead_letters()) == 1


def test_an_event_too_far_ahead_is_refused_and_closes_no_window(engine: Any) -> None:
    query = engine.register(TEXT)
    day = 86_400_000
    now = int(time.time() * 1000)
    engine.push(S, nt("a p b"), timestamp=100)
    with pytest.raises(penstock.DataError):
        engine.push(S, nt("far p b"), timestamp=now + 2 * day)
    assert len(engine.dead_letters()) == 1
    engine.advance(S, 1000)
    assert [e.time for e in query.poll()] == [1000]


def test_max_ahead_is_measured_from_the_watermark_too() -> None:
    with penstock.Engine() as engine:
        future = 10**14
        engine.declare_stream(S, max_ahead_ms=1000)
        engine.advance(S, future)
        engine.push(S, nt("a p b"), timestamp=future + 1000)
        with pytest.raises(penstock.DataError):
            engine.push(S, nt("a p b"), timestamp=future + 999 + 1002)


def test_too_many_instants_at_once_are_a_limit_and_can_be_skipped(engine: Any) -> None:
    query = engine.register(TEXT.replace("STEP 1s", "STEP 1ms"))
    engine.push(S, nt("a p b"), timestamp=100)
    with pytest.raises(penstock.LimitError):
        engine.advance(S, 10_000_000)
    with pytest.raises(penstock.LimitError):
        engine.push(S, nt("a p b"), timestamp=10_000_000)
    assert list(query.poll()) == []
    engine.push(S, nt("c p b"), timestamp=101)  # nothing had changed
    engine.advance(S, 10_000_000, skip=True)
    seen = [e.time for e in query.poll()]
    assert len(seen) < 10_000
    engine.push(S, nt("late p b"), timestamp=10_000_000)
    assert len(engine.late(S)) == 1
    engine.push(S, nt("d p b"), timestamp=10_000_150)
    engine.advance(S, 10_000_200)
    found = {e.time: subjects(e) for e in query.poll()}
    assert found[10_000_200] == ["d"]


def test_unpolled_evaluations_are_bounded(engine: Any) -> None:
    engine.register(TEXT.replace("STEP 1s", "STEP 1ms"))
    engine.push(S, nt("a p b"), timestamp=1)
    with pytest.raises(penstock.LimitError):  # noqa: PT012 (which of the steps reaches the limit is free)
        for k in range(1, 5):
            engine.advance(S, k * 50_000)


def test_verbs_on_unknown_streams_are_errors(engine: Any) -> None:
    for call in (
        lambda: engine.push(T, nt("a p b"), timestamp=1),
        lambda: engine.push_events(T, [(1, nt("a p b"))]),
        lambda: engine.advance(T, 1),
        lambda: engine.late(T),
        lambda: engine.drop_stream(T),
    ):
        with pytest.raises(penstock.UnknownStreamError):
            call()


@pytest.mark.parametrize(
    "settings",
    [
        {"batch_ms": 0},
        {"batch_ms": -5},
        {"lateness_ms": -1},
        {"retention_ms": -1},
        {"timing": "some"},
        {"timing": ["not an iri"]},
        {"max_ahead_ms": -1},
    ],
)
def test_senseless_declarations_are_errors(settings: Any) -> None:
    with penstock.Engine() as engine, pytest.raises((penstock.PenstockError, ValueError)):
        engine.declare_stream(S, **settings)


def test_a_dropped_stream_is_unknown_and_its_absorbed_data_stay(engine: Any) -> None:
    engine.push(S, nt("a p b"), timestamp=100)
    engine.advance(S, 100)
    engine.drop_stream(S)
    with pytest.raises(penstock.UnknownStreamError):
        engine.push(S, nt("a p b"), timestamp=200)
    assert engine.query("ASK { <urn:x:a> <urn:x:p> <urn:x:b> }") is True


def test_a_stopped_query_reports_no_more(engine: Any) -> None:
    query = engine.register(TEXT)
    engine.push(S, nt("a p b"), timestamp=100)
    query.stop()
    engine.advance(S, 5000)
    assert list(query.poll()) == []
    assert not list(engine.queries)
    engine.register(TEXT)


def test_two_queries_of_one_name_are_an_error(engine: Any) -> None:
    engine.register(TEXT)
    with pytest.raises(penstock.PenstockError):
        engine.register(TEXT)


# ---- ways to give and to take
def test_events_come_as_text_bytes_turtle_or_rdflib_triples(engine: Any) -> None:
    query = engine.register(TEXT)
    p, o = rdflib.URIRef("urn:x:p"), rdflib.URIRef("urn:x:o")
    engine.push(S, nt("a p o"), timestamp=100)
    engine.push(S, nt("b p o").encode(), timestamp=200)
    engine.push(S, "@prefix : <urn:x:> . :c :p :o .", timestamp=300, format="turtle")
    engine.push(S, [(rdflib.URIRef("urn:x:d"), p, o)], timestamp=400)
    engine.advance(S, 1000)
    assert [subjects(e) for e in query.poll()] == [["a", "b", "c", "d"]]


def test_ids_round_trip(engine: Any) -> None:
    terms = [
        rdflib.URIRef("urn:x:a"),
        rdflib.Literal("54.0", datatype=rdflib.XSD.double, normalize=False),
        rdflib.Literal("007", datatype=rdflib.XSD.integer, normalize=False),
        rdflib.Literal("x", lang="en-gb"),
        rdflib.Literal("1E0", datatype=rdflib.XSD.double, normalize=False),
        rdflib.Literal("y" * 1000),
    ]
    back = engine.decode(engine.encode(terms))
    assert [(str(t), getattr(t, "datatype", None), getattr(t, "language", None)) for t in back] == [
        (str(t), getattr(t, "datatype", None), getattr(t, "language", None)) for t in terms
    ]


def test_subscribers_and_async_for_get_answers(engine: Any) -> None:
    seen: list[int] = []
    query = engine.register(TEXT)
    query.subscribe(lambda evaluation: seen.append(evaluation.time))
    engine.push(S, nt("a p b"), timestamp=100)
    engine.advance(S, 2000)
    assert seen == [1000, 2000]
    other = engine.register(TEXT.replace("QUERY q", "QUERY r"))
    engine.advance(S, 4000)

    async def first_two() -> list[int]:
        times = []
        async for evaluation in other:
            times.append(evaluation.time)
            if len(times) == 2:
                break
        return times

    assert asyncio.run(asyncio.wait_for(first_two(), 30)) == [3000, 4000]


def test_queries_run_during_pushes_and_see_whole_batches(engine: Any) -> None:
    """Each event brings two triples; no snapshot may show one without the other."""
    failures: list[str] = []
    done = threading.Event()

    def read() -> None:
        last = 0
        while not done.is_set():
            row = next(
                iter(
                    engine.query(
                        "SELECT (COUNT(?a) AS ?x) (COUNT(?b) AS ?y) WHERE { { ?a <urn:x:p> ?v } UNION { ?b <urn:x:q> ?v } }"
                    )
                )
            )
            x, y = int(row["x"]), int(row["y"])
            if x != y or x < last:
                failures.append(f"{last} -> {x}, {y}")
            last = x

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        for k in range(1, 400):
            engine.push(S, nt(f"n{k} p v{k}", f"n{k} q v{k}"), timestamp=k * 20)
    finally:
        done.set()
        for reader in readers:
            reader.join(60)
    assert not failures, failures[:3]


# ---- restart
def session(path: Path, shards: int = 1) -> EngineSystem:
    return EngineSystem(shards=shards, data_dir=path)


@pytest.mark.parametrize("crash", [False, True])
@pytest.mark.parametrize("shards", [1, 3])
def test_a_restart_changes_no_answer(tmp_path: Path, shards: int, crash: bool) -> None:
    system = session(tmp_path / "data", shards)
    system.load(nt("stored p x"))
    system.declare(S, lateness_ms=50, timing=["urn:x:at"], absorb_into="urn:x:g")
    clauses = f"FROM STREAM <{S}> [RANGE 2s STEP 1s] FROM <urn:x:g>"
    system.register(f"REGISTER ISTREAM q AS {PREFIX} SELECT ?s ?o {clauses} WHERE {{ ?s ?p ?o }}")
    system.register(
        f"REGISTER QUERY n AS {PREFIX} SELECT (COUNT(*) AS ?n) FROM STREAM <{S}> [TRIPLES 3 STEP 2] WHERE {{ ?s ?p ?o }}"
    )
    system.push(S, 500, nt("a p b", "a at c"))
    system.push(S, 1120, nt("d at e"))
    before = [(e.time, sorted(map(str, e.answer.rows))) for e in system.poll("q")]
    counted = [e.time for e in system.poll("n")]
    system.restart(crash=crash)
    assert [len(r) for _, r in before] == [2]
    assert counted == [500]
    assert system.poll("q") == []
    system.push(S, 1060, nt("late at e"))  # w is still 1069
    assert system.late(S) == 1
    system.push(S, 1090, nt("f p g"))
    system.advance(S, 3000)
    after = {e.time: len(e.answer.rows) for e in system.poll("q")}
    assert after == {2000: 2, 3000: 0}
    assert [e.time for e in system.poll("n")] == [1120]
    assert system.ask(f"{PREFIX} ASK {{ :stored :p :x . GRAPH :g {{ :f :p :g }} }}") is True
    system.close()


def test_a_registration_without_progress_survives(tmp_path: Path) -> None:
    system = session(tmp_path / "data")
    system.declare(S)
    system.register(TEXT)
    system.restart()
    system.push(S, 100_050, nt("a p b"))
    system.advance(S, 101_000)
    assert [e.time for e in system.poll("q")] == [101_000]
    system.close()


def test_a_stopped_query_stays_stopped(tmp_path: Path) -> None:
    system = session(tmp_path / "data")
    system.declare(S)
    system.register(TEXT)
    system.stop("q")
    system.restart()
    assert not list(system.engine.queries)
    assert list(system.engine.streams)
    system.close()


def test_a_broken_checkpoint_is_a_storage_error(tmp_path: Path) -> None:
    system = session(tmp_path / "data")
    system.load(nt("a p b"))
    system.close()
    for path in (tmp_path / "data").rglob("*"):
        if path.is_file():
            path.write_bytes(b"not a checkpoint")
    with pytest.raises(penstock.StorageError):
        session(tmp_path / "data")
