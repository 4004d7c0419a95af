"""The Python face of the executor: plans in, columns out."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.errors import LimitError, PenstockError

if TYPE_CHECKING:
    from pathlib import Path

XSD_STRING = "http://www.w3.org/2001/XMLSchema#string"
STORED = [{"src": 0, "graphs": [0]}]


class StateMachine:
    """A small stored graph: `a` knows b and c, b knows c."""

    def __init__(self, directory: Path) -> None:
        self.dictionary = native.Dictionary()
        self.store = native.Store(str(directory), 1, 1 << 26)
        self.a, self.b, self.c, self.knows = (self.iri(name) for name in ("a", "b", "c", "knows"))
        edges = [(self.a, self.b), (self.a, self.c), (self.b, self.c)]
        s, o = np.array(edges, np.uint64).T.copy()
        p = np.full(len(edges), self.knows, np.uint64)
        self.store.commit(s, p, o, np.zeros(len(edges), np.uint64))

    def iri(self, name: str) -> int:
        return self.dictionary.intern(1, f"urn:test:{name}")

    def string(self, text: str) -> int:
        return self.dictionary.intern(3, text, XSD_STRING)

    def scan(self, s: dict[str, int], o: dict[str, int], source: dict[str, Any] | None = None) -> dict[str, Any]:
        inner = source or {"op": "seed", "id": 1}
        return {"op": "scan", "id": 2, "in": inner, "s": s, "p": {"id": self.knows}, "o": o, "dataset": STORED}

    def run(self, root: dict[str, Any], seed_slots: list[int] | None = None, **options: Any) -> native.Result:
        plan = native.Plan({"slots": 4, "seed": seed_slots or [], "root": root, "subplans": []})
        return native.execute(plan, self.store, self.dictionary, [self.store.view()], **options)


@pytest.fixture
def state_machine(tmp_path: Path) -> StateMachine:
    return StateMachine(tmp_path)


def rows(result: native.Result) -> list[tuple[int, ...]]:
    columns = [result.column(i).tolist() for i in range(len(result.slots))]
    return sorted(zip(*columns, strict=True))


def test_a_scan_gives_columns_by_slot(state_machine: StateMachine) -> None:
    result = state_machine.run(state_machine.scan({"var": 0}, {"var": 1}))
    assert result.slots == [0, 1]
    assert result.rows == 3
    assert rows(result) == sorted(
        [(state_machine.a, state_machine.b), (state_machine.a, state_machine.c), (state_machine.b, state_machine.c)]
    )


def test_a_seed_runs_all_members_at_once(state_machine: StateMachine) -> None:
    members = np.array([2, 0, 1, 0], np.uint64)
    people = np.array([state_machine.a, state_machine.b, state_machine.c, state_machine.a], np.uint64)
    result = state_machine.run(state_machine.scan({"var": 1}, {"var": 2}), [0, 1], seed=[members, people])
    result.sort_by(0)
    assert result.column(0).tolist() == [0, 0, 0, 2, 2]
    assert result.offsets(0, 3).tolist() == [0, 3, 3, 5]


def test_a_seed_of_ids_is_one_row(state_machine: StateMachine) -> None:
    scan = state_machine.scan({"var": 1}, {"var": 2})
    result = state_machine.run(scan, [0, 1], seed=(7, state_machine.a))
    assert rows(result) == sorted((7, state_machine.a, each) for each in (state_machine.b, state_machine.c))
    with pytest.raises(ValueError, match="seed slots"):
        state_machine.run(scan, [0, 1], seed=(7,))


def test_an_indexed_seed_gives_the_same_rows_and_looks_up_fewer(state_machine: StateMachine) -> None:
    members = np.arange(20_000, dtype=np.uint64)
    people = np.array([state_machine.dictionary.intern(1, f"urn:test:{i // 2}") for i in range(20_000)], np.uint64)
    people[[7, 19_000, 19_999]] = state_machine.a, state_machine.a, state_machine.b
    spec = {"slots": 4, "seed": [0, 1], "root": state_machine.scan({"var": 1}, {"var": 2}), "subplans": []}
    plan, seed = native.Plan(spec), native.Seed([members, people])
    found, pushed = [], []
    for given in ([members, people], seed, seed, seed):
        profile = native.Profile()
        view = state_machine.store.view()
        result = native.execute(plan, state_machine.store, state_machine.dictionary, [view], given, profile=profile)
        result.sort_by(0)
        found.append([result.column(i).tolist() for i in range(3)])
        pushed.append(dict(profile.rows())[1])
    assert pushed == [20_000, 20_000, 3, 3]  # a first run does not build the index
    assert found[0][0] == [7, 7, 19_000, 19_000, 19_999]
    assert found == [found[0]] * 4
    assert seed.bytes > 2 * people.nbytes
    with pytest.raises(ValueError, match="length"):
        native.Seed([members, people[1:]])
    with pytest.raises(PenstockError, match="seed slots"):
        state_machine.run(state_machine.scan({"var": 1}, {"var": 2}), [0, 1], seed=native.Seed([members]))


def test_columns_outlive_their_result(state_machine: StateMachine) -> None:
    column = state_machine.run(state_machine.scan({"id": state_machine.a}, {"var": 1})).column(0)
    gc.collect()
    assert sorted(column.tolist()) == sorted([state_machine.b, state_machine.c])
    assert not column.flags.writeable


def test_sorting_an_answer_that_stands_leaves_that_of_other_runs_as_it_is(state_machine: StateMachine) -> None:
    spec = {"slots": 4, "seed": [0, 1], "root": state_machine.scan({"var": 1}, {"var": 2}), "subplans": []}
    plan, seed = native.Plan(spec), [np.array([0], np.uint64), np.array([state_machine.a], np.uint64)]
    s, p, o = (np.array([term], np.uint64) for term in (state_machine.a, state_machine.knows, state_machine.a))
    state_machine.store.commit(s, p, o, np.zeros(1, np.uint64))  # the least id comes last

    def run() -> native.Result:
        return native.execute(plan, state_machine.store, state_machine.dictionary, [state_machine.store.view()], seed)

    run(), run()  # the first notes a seed, the second what it looks up
    first, second = run(), run()
    before = second.column(2).tolist()
    assert before != sorted(before)
    first.sort_by(2)
    assert first.column(2).tolist() == sorted(before)
    assert second.column(2).tolist() == before
    assert run().column(2).tolist() == before


def test_terms_that_an_evaluation_makes_live_with_its_result(state_machine: StateMachine) -> None:
    text = "a text that is too long for an inline literal"
    call = {"call": "concat", "args": [{"id": state_machine.string(text)}, {"id": state_machine.string("!")}]}
    result = state_machine.run({"op": "extend", "id": 3, "in": {"op": "seed", "id": 1}, "slot": 0, "expr": call})
    local, column = result.local, result.column(0)
    del result
    gc.collect()
    assert local.decode(column) == [(3, text + "!", XSD_STRING, "")]


def test_functions_of_python_are_called_with_terms(state_machine: StateMachine) -> None:
    asked: list[tuple[str, object]] = []

    def foreign(name: str, arguments: list[native.TermTuple | None], seconds_left: float) -> native.TermTuple:
        asked.append((name, arguments))
        return (3, "digest of something", XSD_STRING, "")

    call = {"call": "sha1", "args": [{"id": state_machine.string("x")}]}
    root = {"op": "extend", "id": 3, "in": {"op": "seed", "id": 1}, "slot": 0, "expr": call}
    result = state_machine.run(root, foreign=foreign)
    assert asked == [("sha1", [(3, "x", XSD_STRING, "")])]
    assert result.local.decode(result.column(0)) == [(3, "digest of something", XSD_STRING, "")]


def test_an_exception_of_such_a_function_is_raised(state_machine: StateMachine) -> None:
    def foreign(name: str, arguments: list[native.TermTuple | None], seconds_left: float) -> native.TermTuple:
        raise ZeroDivisionError(name)

    call = {"call": "sha1", "args": [{"id": state_machine.string("x")}]}
    with pytest.raises(ZeroDivisionError):
        state_machine.run(
            {"op": "extend", "id": 3, "in": {"op": "seed", "id": 1}, "slot": 0, "expr": call}, foreign=foreign
        )


def test_too_much_memory_is_a_limit_error(state_machine: StateMachine) -> None:
    values = {"op": "values", "id": 5, "slots": [0], "rows": [[state_machine.a]] * 2000}
    other = {"op": "values", "id": 6, "slots": [1], "rows": [[state_machine.a]] * 2000}
    with pytest.raises(LimitError, match="memory"):
        state_machine.run({"op": "join", "id": 7, "left": values, "right": other}, memory_bytes=1 << 20)


def test_a_malformed_plan_is_an_error(state_machine: StateMachine) -> None:
    with pytest.raises(PenstockError, match="unknown operator"):
        state_machine.run({"op": "dance", "id": 1})
    with pytest.raises(TypeError):
        state_machine.run({"op": "seed", "id": object()})


def test_the_profile_lists_every_node(state_machine: StateMachine) -> None:
    profile = native.Profile()
    state_machine.run(state_machine.scan({"var": 0}, {"var": 1}), profile=profile, now_ms=5)
    assert (profile.rows(), profile.nanos(), profile.timed_at_ms) == ({1: 1, 2: 3}, {}, None)
    profile.timed = True
    state_machine.run(state_machine.scan({"var": 0}, {"var": 1}), profile=profile, now_ms=6)
    assert (profile.rows(), profile.nanos().keys(), profile.timed_at_ms) == ({1: 1, 2: 3}, {1, 2}, 6)
    assert not profile.timed


def test_multiset_difference_removes_rows_one_for_one() -> None:
    def ids(*values: int) -> native.Ids:
        return np.array(values, np.uint64)

    left, right = [ids(1, 1, 2, 3), ids(5, 5, 6, 7)], [ids(1, 3), ids(5, 8)]
    assert native.multiset_difference(left, right).tolist() == [1, 2, 3]
    assert native.multiset_difference(left, [ids(), ids()]).tolist() == [0, 1, 2, 3]
