"""A query set answers as many single queries would: members come and go, the engine checkpoints, restarts and crashes."""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock
from penstock import Solutions
from penstock.core import _native as native
from penstock.engine.sets import earlier_texts

S300 = "FROM STREAM <urn:s> [RANGE 300ms STEP 100ms]"
BODIES = {
    "triple": f"SELECT ?o {S300} WHERE {{ ?user <urn:p> ?o FILTER(?o <= ?limit) }}",
    "all": f"SELECT * {S300} WHERE {{ ?user <urn:k> ?other . ?other <urn:p> ?o FILTER(?o + 1 > ?limit) }}",
    "object": f"SELECT ?s ?n {S300} WHERE {{ ?s <urn:k> ?user . OPTIONAL {{ ?s <urn:p> ?n FILTER(?n != ?limit) }} }}",
    "literal": f"SELECT ?s {S300} WHERE {{ ?s <urn:p> ?limit ; <urn:k> ?user }}",
    "count": f"SELECT (COUNT(?o) AS ?n) (SUM(?o) AS ?sum) {S300} WHERE {{ ?user <urn:p> ?o FILTER(?o < ?limit) }}",
    "groups": f"SELECT ?s (COUNT(*) AS ?n) {S300} WHERE {{ ?s <urn:k> ?user . ?s <urn:p> ?o }}"
    " GROUP BY ?s HAVING (COUNT(*) > ?limit || ?limit = 1)",
    "distinct": f"SELECT DISTINCT ?o {S300} WHERE {{ {{ ?user <urn:p> ?o }} UNION {{ ?o <urn:k> ?user BIND(?limit AS ?b) }} }}",
    "absent": f"SELECT ?o {S300} WHERE {{ ?s <urn:p> ?o FILTER NOT EXISTS {{ ?s <urn:k> ?user }} FILTER(?o IN (?limit, 2)) }}",
    "stored": f"SELECT ?c ?o {S300} FROM <urn:x-penstock:stored> WHERE {{ ?user <urn:knows> ?c . ?c <urn:p> ?o MINUS {{ ?c <urn:p> ?limit }} }}",
    "nested": f"SELECT ?m {S300} WHERE {{ ?user <urn:k> ?x {{ SELECT ?x (MAX(?o) AS ?m) WHERE {{ ?x <urn:p> ?o FILTER(?o <= ?limit) }} GROUP BY ?x }} }}",
    "twice": f"SELECT ?o {S300} FROM STREAM <urn:t> [RANGE 200ms STEP 100ms] WHERE {{ ?user <urn:k> ?user . ?user <urn:p> ?o FILTER(?o >= ?limit && STR(?user) != STR(?limit)) }}",
    "counted": "SELECT ?o FROM STREAM <urn:t> [TRIPLES 4 STEP 2] WHERE { ?user <urn:p> ?o FILTER(?o <= ?limit) }",
    "tumbling": "SELECT ?s ?o FROM STREAM <urn:s> [RANGE 200ms TUMBLING] WHERE { ?s <urn:k> ?user . ?s <urn:p> ?o FILTER(?o != ?limit) }",
    "ask": f"ASK {S300} WHERE {{ ?user <urn:p> ?o FILTER(?o = ?limit) }}",
    "construct": f"CONSTRUCT {{ ?s <urn:near> ?o }} {S300} WHERE {{ ?s <urn:k> ?user ; <urn:p> ?o FILTER(?o < ?limit) }}",
    "product": f"SELECT ?a ?b {S300} WHERE {{ ?user <urn:p> ?a . ?x <urn:k> ?user . ?x <urn:p> ?b FILTER(?b < ?limit) }}",
}
OPERATORS = {"triple": ("QUERY", "ISTREAM", "DSTREAM"), "all": ("QUERY", "ISTREAM"), "groups": ("QUERY", "DSTREAM")}
CASES = [(body, operator) for body in BODIES for operator in OPERATORS.get(body, ("QUERY",))]

users, limits, times = st.integers(0, 3), st.integers(0, 4), st.integers(0, 120)
rows = st.lists(st.tuples(users, users, limits), min_size=1, max_size=5)
events = st.lists(st.tuples(times, st.sampled_from("pk"), users, st.integers(0, 4)), min_size=1, max_size=6)
operations = st.one_of(
    st.tuples(st.just("push"), st.sampled_from("st"), events),
    st.tuples(st.just("push"), st.sampled_from("st"), events),
    st.tuples(st.just("advance"), times),
    st.tuples(st.just("add"), rows),
    st.tuples(st.just("add"), rows),
    st.tuples(st.just("remove"), st.lists(users, min_size=1, max_size=3)),
    st.tuples(st.just("load"), users, users),
    st.tuples(st.just("poll")),
    st.tuples(st.just("skip"), times),
    st.tuples(st.sampled_from(["checkpoint", "reopen", "crash"])),
)


def substituted(text: str, user: int, limit: int) -> str:
    return text.replace("?user", f"<urn:n{user}>").replace("?limit", str(limit))


def answer_of(answer: Any) -> Any:
    if isinstance(answer, bool):
        return answer
    return Counter(tuple(sorted((name, term.n3()) for name, term in row.items())) for row in rows_of(answer))


def rows_of(answer: Any) -> Any:
    if isinstance(answer, Solutions):
        return answer
    return ({"subject": s, "predicate": p, "object": o} for s, p, o in answer)


def arrow_rows(row: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, value["value"]) for name, value in row.items() if value is not None and name != "id"))


def texts_of(answer: Any) -> Counter[tuple[tuple[str, str], ...]]:
    """Return an answer in the form of `arrow_rows`."""
    if isinstance(answer, bool):
        return Counter({(): 1} if answer else {})
    return Counter(tuple(sorted((name, str(term)) for name, term in row.items())) for row in rows_of(answer))


class System:
    """An engine with a query set, and with the queries that the set should equal."""

    def __init__(self, folder: Path, body: str, operator: str, report: str) -> None:
        self.folder, self.copies, self.time = folder, 0, 0
        self.text, self.operator, self.report = BODIES[body], operator, report
        self.members: dict[int, tuple[int, int, str]] = {}  # key -> user, limit, query
        self.of_set: dict[tuple[int, int], Any] = {}
        self.of_queries: dict[tuple[int, int], Any] = {}
        self.reported: dict[str, Counter[Any]] = {}  # by query, the last answer that a report of changes contains
        self.changed: dict[tuple[int, int], tuple[Counter[Any], Counter[Any]]] = {}  # of the set: added, removed
        self.differences: dict[tuple[int, int], tuple[Counter[Any], Counter[Any]]] = {}  # of the queries
        self.registered = 0
        self.engine = self.opened()
        for iri in ("urn:s", "urn:t"):
            self.engine.declare_stream(iri, timing="all")
        self.engine.load(b"<urn:n0> <urn:knows> <urn:n1> .", format="nt")
        text = f"REGISTER {operator} set (?user ?limit) AS {self.text}"
        self.engine.register_set(text, report=report, key="id")

    def opened(self) -> penstock.Engine:
        return penstock.Engine(data_dir=self.folder / str(self.copies), durability="commit", clock=lambda: 1_000_000)

    @property
    def set(self) -> penstock.QuerySet:
        return self.engine.query_sets["set"]

    def push(self, stream: str, given_events: list[tuple[int, str, int, int]]) -> None:
        made = []
        for after, predicate, subject, value in sorted(given_events):
            target = (
                f"<urn:n{value % 4}>" if predicate == "k" else f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            )
            made.append((self.time + after + 1, f"<urn:n{subject}> <urn:{predicate}> {target} ."))
        self.engine.push_events(f"urn:{stream}", made)
        self.time = max(self.time, made[-1][0] - 100)

    def advance(self, after: int) -> None:
        self.time += after
        self.engine.advance(None, self.time)

    def skip(self, after: int) -> None:
        self.time += after
        self.engine.advance(None, self.time, skip=True)

    def add(self, given_rows: list[tuple[int, int, int]]) -> None:
        self.set.add([{"id": key, "user": f"urn:n{user}", "limit": limit} for key, user, limit in given_rows])
        latest = {key: (user, limit) for key, user, limit in given_rows}
        for key, (user, limit) in latest.items():
            if key in self.members and self.members[key][:2] == (user, limit):
                continue
            self.stop(key)
            name = f"q{key}-{self.registered}"
            self.registered += 1
            report = "REPORT NONEMPTY" if self.report == "nonempty" else ""
            text = (
                f"REGISTER {self.operator} {name.replace('-', '_')} {report} AS {substituted(self.text, user, limit)}"
            )
            self.engine.register(text, name=name)
            self.members[key] = user, limit, name

    def remove(self, keys: list[int]) -> None:
        known = {key for key in keys if key in self.members}
        assert self.set.remove(keys) == len(known)
        for key in known:
            self.stop(key)

    def stop(self, key: int) -> None:
        if key in self.members:
            self.poll()
            self.engine.queries[self.members.pop(key)[2]].stop()

    def load(self, subject: int, target: int) -> None:
        self.engine.update(f"INSERT DATA {{ <urn:n{subject}> <urn:knows> <urn:n{target}> }}")

    def checkpoint(self) -> None:
        self.engine.checkpoint()

    def reopen(self) -> None:
        self.engine.close()
        self.engine = self.opened()

    def crash(self) -> None:
        self.copies += 1
        shutil.copytree(
            self.folder / str(self.copies - 1), self.folder / str(self.copies), ignore=shutil.ignore_patterns("lock")
        )
        self.engine.close()
        self.engine = self.opened()

    def poll(self) -> None:
        for step in self.set.poll():
            found = {key: step[key] for key in range(4) if key in step}
            assert len(found) == len(step) == step.members.num_rows
            assert sorted(found) == sorted(step.members.column("id").to_pylist())
            by_key: dict[int, Counter[Any]] = {}
            for row in step.to_arrow().to_pylist():
                by_key.setdefault(row["id"], Counter())[arrow_rows(row)] += 1
            if self.report == "change":
                self.poll_changes(step, found)
            for key, answer in found.items():
                self.of_set[key, step.time] = answer_of(answer)
                size = int(answer) if isinstance(answer, bool) else len(answer)
                assert by_key.get(key, Counter()).total() == size
        for key, (_, _, name) in self.members.items():
            for evaluation in self.engine.queries[name].poll():
                self.expect(key, name, evaluation.time, evaluation.answer)

    def poll_changes(self, step: Any, found: dict[int, Any]) -> None:
        gained: dict[int, Counter[Any]] = {key: Counter() for key in found}
        lost: dict[int, Counter[Any]] = {key: Counter() for key in found}
        for table, counts in ((step.added, gained), (step.removed, lost)):
            for row in table.to_pylist():
                counts[row["id"]][arrow_rows(row)] += 1
        for key in found:
            assert gained[key] or lost[key]
            self.changed[key, step.time] = gained[key], lost[key]

    def expect(self, key: int, name: str, time: int, answer: Any) -> None:
        if self.report == "change":
            now, before = texts_of(answer), self.reported.get(name, Counter())
            if now == before:
                return
            self.reported[name] = now
            self.differences[key, time] = now - before, before - now
        self.of_queries[key, time] = answer_of(answer)

    def check(self) -> None:
        self.poll()
        assert self.of_set == self.of_queries
        assert self.changed == self.differences
        assert len(self.set) == len(self.members)
        assert all((key in self.set) == (key in self.members) for key in range(5))


@pytest.fixture(params=[0, 1 << 62], ids=["indexed", "plain"], autouse=True)
def shortcuts(request, monkeypatch):
    """Runs tests with indexes of the members' parameters, updates of all answers, and tables that use the texts of the
    table before; and without all of these.
    """
    monkeypatch.setattr(earlier_texts, "_LEAST_ROWS", request.param)
    usual = native.index_seeds_from(request.param), native.maintain_from(request.param)
    yield
    native.index_seeds_from(usual[0])
    native.maintain_from(usual[1])


@pytest.mark.parametrize(("body", "operator"), CASES)
@given(st.sampled_from(["every", "nonempty"]), st.lists(operations, min_size=4, max_size=16))
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_set_equals_the_same_queries_registered_singly(body, operator, report, done):
    play(body, operator, report, done)


@pytest.mark.parametrize("body", BODIES)
@given(st.lists(operations, min_size=4, max_size=16))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_report_of_changes_is_the_difference_of_the_answers(body, done):
    play(body, "QUERY", "change", done)


def play(body: str, operator: str, report: str, done: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        system = System(Path(folder), body, operator, report)
        try:
            for name, *arguments in done:
                getattr(system, name)(*arguments)
            system.advance(400)
            system.check()
        finally:
            system.engine.close()
