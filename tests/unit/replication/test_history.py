from __future__ import annotations

from penstock.replication.history import INSERTIONS, History


def made() -> History:
    history = History()
    history.add("a", 1, 100)
    history.add("b", 2, 50)
    for step, (iri, closed) in enumerate([("a", 100), ("b", 400), ("", 1), ("a", 300), ("b", 500)], 1):
        history.step = step
        history.record(iri, closed)
    return history


def test_an_instant_is_due_at_the_step_that_closes_its_last_stream():
    history = made()
    assert history.due(["a"], 100) == 1
    assert history.due(["a", "b"], 100) == 2
    assert history.due(["a"], 200) == 4
    assert history.due(["a"], 301) == history.step


def test_a_late_evaluation_is_bounded_by_what_others_had_closed_then():
    history = made()
    assert dict(history.bounds(["a"], 200)) == {INSERTIONS: 1, 2: 7}
    assert dict(history.bounds(["a"], 100))[INSERTIONS] == 0
    assert history.bounds(["b"], 500) == []


def test_what_is_pruned_is_not_needed_at_later_steps():
    history = made()
    before = [history.bounds(["a"], time) for time in (200, 300)]
    history.prune(4)
    assert [history.bounds(["a"], time) for time in (200, 300)] == before
    again = History()
    again.restore(history.save(), history.step)
    assert again.bounds(["a"], 200) == before[0]


def test_absorbed_tuples_of_a_dropped_stream_have_a_bound_until_no_query_reads_the_earlier_graph():
    history = made()
    history.step = 6
    history.drop("b")
    assert dict(history.bounds(["a"], 200)) == {INSERTIONS: 1, 2: 7}
    history.add("b", 3, 50)
    again = History()
    again.restore(history.save(), history.step)
    assert dict(again.bounds(["a"], 200)) == {INSERTIONS: 1, 2: 7}
    assert again.prune(4) == []
    [gone] = again.prune(5)
    assert gone.number == 2
    assert dict(again.bounds(["a"], 300)) == {INSERTIONS: 1}
