"""The known traps of docs/semantics.md §7, each a test by its name. Run against the model as well: it must
not fall in either.
"""

from __future__ import annotations

from typing import Any

from support.brief import PREFIX, S, T, nt, timeline, words

ROWS = "SELECT ?s ?o"


def query(name: str, clauses: str, where: str, select: str = ROWS, header: str = "REGISTER QUERY") -> str:
    return f"{header} {name} AS {PREFIX} {select} {clauses} WHERE {{ {where} }}"


def window(range_: str = "1s", step: str = "1s", stream: str = S) -> str:
    return f"FROM STREAM <{stream}> [RANGE {range_} STEP {step}]"


def test_01_every_message_of_a_window_counts(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window(), "?s :p ?o"))
    for k in range(1, 6):
        system.push(S, 100 * k, nt(f"a{k} p b"))
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: [(f"a{k}", "b") for k in range(1, 6)]}


def test_02_every_instant_after_a_gap_is_reported_and_the_last_window_fires(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window("2s", "1s"), "?s :p ?o"))
    system.push(S, 500, nt("a p b"))
    system.push(S, 5500, nt("c p d"))
    assert timeline(system.poll(q)) == {1000: [("a", "b")], 2000: [("a", "b")], 3000: [], 4000: [], 5000: []}
    system.advance(S, 6000)
    assert timeline(system.poll(q)) == {6000: [("c", "d")]}


def test_03_two_windows_on_one_stream_are_independent(system: Any) -> None:
    system.declare(S)
    clauses = f"FROM NAMED WINDOW <urn:x:short> ON <{S}> [RANGE 1s STEP 1s] FROM NAMED WINDOW <urn:x:long> ON <{S}> [RANGE 3s STEP 1s]"
    where = "WINDOW <urn:x:short> { ?s :p ?o } WINDOW <urn:x:long> { ?u :q ?o }"
    q = system.register(query("q", clauses, where, "SELECT ?s ?u ?o"))
    system.push(S, 500, nt("old q x"))
    system.push(S, 2500, nt("new p x"))
    system.advance(S, 4000)
    evaluations = system.poll(q)
    assert timeline(evaluations) == {1000: [], 2000: [], 3000: [("new", "old", "x")], 4000: []}
    assert evaluations[2].windows == {"urn:x:short": (2000, 3000), "urn:x:long": (0, 3000)}


def test_04_a_filter_in_a_stream_block_counts_and_ten_hours_are_ten_hours(system: Any) -> None:
    system.declare(S, batch_ms=3_600_000)
    clauses = f"FROM NAMED STREAM <{S}> [RANGE 10h STEP 1h]"
    q = system.register(query("q", clauses, f"GRAPH <{S}> {{ ?s :v ?o FILTER(?o > 5) }}"))
    system.push(S, 1, nt("a v 9"))
    system.push(S, 2, nt("b v 1"))
    hour = 3_600_000
    system.advance(S, 12 * hour)
    evaluations = system.poll(q)
    assert [e.time for e in evaluations] == [hour * k for k in range(1, 13)]
    assert [words(e) for e in evaluations] == [[("a", "9")]] * 10 + [[]] * 2
    assert evaluations[11].windows == {S: (2 * hour, 12 * hour)}


def test_05_the_grid_does_not_start_at_the_first_arrival(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window("700ms", "700ms"), "?s :p ?o"))
    system.push(S, 10_333, nt("a p b"))
    system.advance(S, 12_000)
    assert [e.time for e in system.poll(q)] == [10_500, 11_200, 11_900]


def test_06_late_data_is_reported_on_request_and_changes_nothing(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window(), "?s :p ?o"))
    system.push(S, 500, nt("a p b"))
    system.advance(S, 600)
    system.push(S, 600, nt("late p b"))
    system.push(S, 601, nt("punctual p b"))
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: [("a", "b"), ("punctual", "b")]}
    assert system.late(S) == 1
    assert system.late(S) == 0
    assert system.ask(f"{PREFIX} ASK {{ :late ?p ?o }}") is False


def test_07_an_idle_stream_blocks_only_until_it_is_advanced(system: Any) -> None:
    system.declare(S)
    system.declare(T)
    q = system.register(query("q", window() + window(stream=T), "?s :p ?o"))
    system.push(S, 500, nt("a p b"))
    system.advance(S, 2000)
    assert system.poll(q) == []
    system.advance(T, 2000)
    assert timeline(system.poll(q)) == {1000: [("a", "b")], 2000: []}


def test_08_a_blank_node_label_belongs_to_its_message(system: Any) -> None:
    system.declare(S)
    count = "SELECT (COUNT(DISTINCT ?s) AS ?n)"
    q = system.register(query("q", window(), "?s ?p ?o", count))
    joined = system.register(query("j", window(), "?s :p ?x . ?s :q ?y", "SELECT ?x ?y"))
    system.push(S, 100, nt("_:b p x"))
    system.push(S, 200, nt("_:b q y"))
    system.push(S, 300, nt("_:b p z", "_:b q w"))
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: ["3"]}
    assert timeline(system.poll(joined)) == {1000: [("z", "w")]}


def test_09_unequal_steps_do_not_drift_apart(system: Any) -> None:
    system.declare(S)
    system.declare(T)
    clauses = window("600ms", "300ms") + window("1s", "500ms", T)
    q = system.register(query("q", clauses, "?s :p ?o"))
    system.push(S, 250, nt("a p b"))
    system.push(T, 450, nt("c p d"))
    for stream in (S, T):
        system.advance(stream, 1500)
    evaluations = system.poll(q)
    assert [(e.time, e.windows[S], e.windows[T]) for e in evaluations] == [
        (300, (-300, 300), (-1000, 0)),
        (500, (-300, 300), (-500, 500)),
        (600, (0, 600), (-500, 500)),
        (900, (300, 900), (-500, 500)),
        (1000, (300, 900), (0, 1000)),
        (1200, (600, 1200), (0, 1000)),
        (1500, (900, 1500), (500, 1500)),
    ]
    both = [("a", "b"), ("c", "d")]
    assert [words(e) for e in evaluations] == [[("a", "b")], both, both, both[1:], both[1:], both[1:], []]


def test_10_stored_data_is_seen_up_to_the_batch_of_the_instant_and_no_further(system: Any) -> None:
    system.declare(S)
    system.declare(T)
    stored = "FROM <urn:x-penstock:stored>"
    clauses = f"FROM NAMED STREAM <{S}> [RANGE 1s STEP 1s] FROM NAMED STREAM <{T}> [RANGE 1s STEP 1s] {stored}"
    q = system.register(query("q", clauses, "?s :p ?o"))
    system.push(S, 1000, nt("in p batch"))
    system.push(S, 1001, nt("next p batch"))
    system.advance(S, 5000)
    assert system.ask(f"{PREFIX} ASK {{ :next :p :batch }}") is True
    system.advance(T, 2000)
    assert timeline(system.poll(q)) == {1000: [("in", "batch")], 2000: [("in", "batch"), ("next", "batch")]}


def test_10_stored_data_has_the_rest_of_the_batch_that_contains_the_instant(system: Any) -> None:
    system.declare(S, batch_ms=1000)
    clauses = f"FROM NAMED STREAM <{S}> [RANGE 250ms STEP 250ms] FROM <urn:x-penstock:stored>"
    q = system.register(query("q", clauses, "?s :p ?o"))
    system.push(S, 900, nt("a p b"))
    system.push(S, 1001, nt("c p d"))
    system.advance(S, 1999)
    assert timeline(system.poll(q)) == {at: [("a", "b")] for at in (250, 500, 750, 1000)}


def test_11_duplicates_in_a_window_count_once(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window(), "?s :p ?o", "SELECT (COUNT(*) AS ?n) (SUM(?o) AS ?sum)"))
    for time in (100, 100, 500):
        system.push(S, time, nt("a p 4"))
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: [("1", "4")]}


def test_12_an_expired_duplicate_leaves_the_younger_one(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window("1s", "500ms"), "?s :p ?o"))
    for time in (400, 900):
        system.push(S, time, nt("a p b"))
    system.advance(S, 2000)
    assert timeline(system.poll(q)) == {500: [("a", "b")], 1000: [("a", "b")], 1500: [("a", "b")], 2000: []}


def test_13_istream_and_dstream_differ_as_bags(system: Any) -> None:
    system.declare(S)
    istream = system.register(query("i", window(), "?s :p ?o", "SELECT ?o", "REGISTER ISTREAM"))
    dstream = system.register(query("d", window(), "?s :p ?o", "SELECT ?o", "REGISTER DSTREAM"))
    system.push(S, 100, nt("a p x"))
    system.push(S, 1100, nt("a p x", "b p x", "c p x"))
    system.push(S, 2100, nt("a p x"))
    system.advance(S, 3000)
    assert timeline(system.poll(istream)) == {1000: ["x"], 2000: ["x", "x"], 3000: []}
    assert timeline(system.poll(dstream)) == {1000: [], 2000: [], 3000: ["x", "x"]}


def test_14_optional_over_an_empty_window_preserves_its_rows(system: Any) -> None:
    system.declare(S)
    system.load(nt("a p b"))
    clauses = f"FROM NAMED STREAM <{S}> [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>"
    q = system.register(query("q", clauses, f"?s :p ?o OPTIONAL {{ GRAPH <{S}> {{ ?s :q ?x }} }}", "SELECT ?s ?x"))
    system.advance(S, 0)
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: [("a", None)]}


def test_15_a_filter_on_an_unbound_variable_drops_rows_not_the_query(system: Any) -> None:
    system.declare(S)
    where = "?s :p ?o OPTIONAL { ?s :v ?x } FILTER(?x > 1 || ?o = :b)"
    q = system.register(query("q", window(), where, "SELECT ?s"))
    system.push(S, 100, nt("a p b", "c p d", "e p d", "e v 7"))
    system.advance(S, 1000)
    assert timeline(system.poll(q)) == {1000: ["a", "e"]}


def test_16_a_triple_in_window_and_stored_graph_is_one_in_the_merged_graph(system: Any) -> None:
    system.declare(S)
    system.declare(T)
    system.load(nt("a p b"))
    clauses = window() + window(stream=T) + "FROM <urn:x-penstock:stored>"
    q = system.register(query("q", clauses, "?s :p ?o"))
    for stream in (S, T):
        system.push(stream, 100, nt("a p b"))
    for stream in (S, T):
        system.advance(stream, 1000)
    assert timeline(system.poll(q)) == {1000: [("a", "b")]}


def test_17_group_by_over_an_empty_window_gives_no_row_and_without_it_one(system: Any) -> None:
    system.declare(S)
    grouped = system.register(query("g", window(), "?s :p ?o", "SELECT ?s (COUNT(?o) AS ?n)") + " GROUP BY ?s")
    whole = system.register(query("w", window(), "?s :p ?o", "SELECT (COUNT(?o) AS ?n)"))
    system.advance(S, 0)
    system.advance(S, 1000)
    assert timeline(system.poll(grouped)) == {1000: []}
    assert timeline(system.poll(whole)) == {1000: ["0"]}


def test_18_a_subject_whose_first_edge_lies_before_the_window_is_found(system: Any) -> None:
    system.declare(S)
    q = system.register(query("q", window("1s", "100ms"), "?s :p ?o"))
    system.push(S, 1000, nt("a p old"))
    system.push(S, 1001, nt("a p new"))
    system.push(S, 1100, nt("a p newer"))
    system.advance(S, 2000)
    found = timeline(system.poll(q))
    assert found[1000] == [("a", "old")]
    assert found[1900] == [("a", "new"), ("a", "newer"), ("a", "old")]
    assert found[2000] == [("a", "new"), ("a", "newer")]
