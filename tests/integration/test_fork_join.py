"""Fork-join over stores in other processes: what becomes of an evaluation when one dies, or does not answer."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from penstock.errors import UnavailableError
from support.engine_over_stores import EngineOverStores
from support.store_processes import StoreProcesses

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = "urn:s"
TEXT = f"""REGISTER RSTREAM q AS SELECT ?x ?z FROM NAMED STREAM <{STREAM}> [RANGE 100ms STEP 100ms]
WHERE {{ GRAPH <{STREAM}> {{ ?x <urn:at> ?y }} ?y <urn:next> ?z . ?z <urn:next> ?w }}"""


@pytest.fixture
def stores() -> Iterator[StoreProcesses]:
    with StoreProcesses() as made:
        yield made


def test_an_evaluation_waits_for_a_store_that_dies_in_its_fork(stores: StoreProcesses) -> None:
    with EngineOverStores(stores, execution="fork-join", transport="tcp") as engine:
        forking = engine.links.forking
        assert forking is not None
        engine.load("".join(f"<urn:{i}> <urn:next> <urn:{(i + 1) % 50}> .\n" for i in range(50)).encode(), format="nt")
        engine.declare_stream(STREAM, batch_ms=100, timing="all")
        query = engine.register(TEXT)

        def push(time: int) -> list[Any]:
            for i in range(50):
                engine.push(STREAM, f"<urn:x{i}> <urn:at> <urn:{i}> .", timestamp=time)
            engine.advance(STREAM, time + 50)
            return list(query.poll())

        (before,) = push(50)
        assert len(list(before.answer)) == 50
        assert forking.forks > 0

        sent = forking._receive
        victim, back = stores.processes[0], []

        def dying(node: int, deadline: float) -> Any:
            if victim is not None and not back:
                victim.kill()  # the rows are there, nothing has come back
                back.append(threading.Timer(0.5, victim.start))
                back[0].start()
            return sent(node, deadline)

        forking._receive = dying  # type: ignore[method-assign]
        (interrupted,) = push(150)  # which waits until the store is back
        assert len(list(interrupted.answer)) == 50
        back[0].join()

        forking._receive = sent  # type: ignore[method-assign]
        (after,) = push(250)
        assert len(list(after.answer)) == 50


def test_a_store_that_does_not_answer_costs_the_time_of_one_query(stores: StoreProcesses) -> None:
    with EngineOverStores(stores, execution="fork-join", transport="shm", patience_s=1.0) as engine:
        forking = engine.links.forking
        assert forking is not None
        engine.load("".join(f"<urn:{i}> <urn:next> <urn:{(i + 1) % 50}> .\n" for i in range(50)).encode(), format="nt")
        text = "SELECT ?x ?z { ?x <urn:next> ?y . ?y <urn:next> ?z }"
        assert len(list(engine.query(text))) == 50
        assert "50 rows from stores" in engine.explain(text)
        late = forking._connection

        def unanswered(node: int, deadline: float) -> Any:
            connection = late(node, deadline)
            connection.send = lambda *_: None  # type: ignore[method-assign]
            return connection

        forking._connection = unanswered  # type: ignore[method-assign]
        with pytest.raises(UnavailableError, match="in time"):
            engine.query(text, timeout_s=0.1)
        forking._connection = late  # type: ignore[method-assign]
        assert len(list(engine.query(text))) == 50
