"""Queries that differ only in constants are one group, evaluated together as soon as they see the same windows."""

from __future__ import annotations

from support.bench import timeline


def groups(bench):
    return bench.engine.stats()["groups"]


def members(query):
    return len(query._member.cohort)


def test_queries_that_differ_in_constants_are_one_group(bench):
    bench.declare("s")
    queries = [bench.register(f":u{i} :p ?o", "s RANGE 100ms") for i in range(5)]
    other = bench.register(":u1 :other ?o", "s RANGE 100ms")
    assert groups(bench) == 2
    assert {members(q) for q in queries} == {5}
    bench.push("s", 50, "u1 p x", "u1 p y", "u3 p z", "u1 other w")
    bench.advance("s", 100)
    assert [timeline(q) for q in queries] == [{100: r} for r in ([], ["x", "y"], [], ["z"], [])]
    assert timeline(other) == {100: ["w"]}


def test_a_later_member_stands_apart_while_its_point_cuts_its_window(bench):
    bench.declare("s")
    first = bench.register(":x :p ?o", "s RANGE 300ms STEP 100ms")
    bench.push("s", 50, "x p a", "y p b")
    bench.push("s", 150, "x p c", "y p d")
    bench.advance("s", 200)
    second = bench.register(":y :p ?o", "s RANGE 300ms STEP 100ms")
    assert second.registration_point == 200
    bench.push("s", 250, "y p e")
    bench.advance("s", 300)
    assert first._member.cohort is not second._member.cohort
    bench.advance("s", 500)
    assert first._member.cohort is second._member.cohort
    assert members(first) == 2
    assert timeline(first) == {100: ["a"], 200: ["a", "c"], 300: ["a", "c"], 400: ["c"], 500: []}
    assert timeline(second) == {300: ["e"], 400: ["e"], 500: ["e"]}
    assert bench.engine.stats()["windows"] == 1


def test_members_of_one_point_stand_apart_together(bench):
    bench.declare("s")
    bench.advance("s", 100)
    first = [bench.register(f":a{i} :p ?o", "s RANGE 1s STEP 100ms") for i in range(3)]
    bench.advance("s", 300)
    second = [bench.register(f":b{i} :p ?o", "s RANGE 1s STEP 100ms") for i in range(3)]
    assert {members(q) for q in first + second} == {3}
    bench.advance("s", 2000)
    assert {members(q) for q in first + second} == {6}


def test_a_merge_in_the_middle_of_a_gap_changes_nothing(bench):
    bench.declare("s")
    first = bench.register(":x :p ?o", "s RANGE 200ms STEP 100ms")
    bench.push("s", 50, "x p a")
    bench.advance("s", 100)
    second = bench.register(":x :p ?o", "s RANGE 200ms STEP 100ms")
    for time in range(150, 1000, 100):
        bench.push("s", time, f"x p v{time}")
    bench.advance("s", 1000)
    ours, theirs = timeline(first), timeline(second)
    assert list(ours) == list(range(100, 1001, 100))
    assert list(theirs) == list(range(200, 1001, 100))
    assert theirs[200] == ["v150"]
    assert ours[200] == ["a", "v150"]
    assert {t: ours[t] for t in range(300, 1001, 100)} == {t: theirs[t] for t in range(300, 1001, 100)}


def test_differences_survive_merging_and_leaving(bench):
    bench.declare("s")
    header = "REGISTER ISTREAM {} AS"
    window = "s RANGE 200ms STEP 100ms"
    first = bench.register(":x :p ?o", window, header=header.format("first"))
    gone = bench.register(":z :p ?o", window, header=header.format("gone"))
    bench.push("s", 50, "x p a", "y p b")
    bench.advance("s", 100)
    second = bench.register(":y :p ?o", window, header=header.format("second"))
    bench.push("s", 150, "x p a", "y p b")
    bench.advance("s", 200)
    gone.stop()
    bench.push("s", 250, "x p a", "y p b", "y p c")
    bench.advance("s", 600)
    assert first._member.cohort is second._member.cohort
    assert timeline(first) == {100: ["a"], 200: [], 300: [], 400: [], 500: [], 600: []}
    assert timeline(second) == {200: ["b"], 300: ["c"], 400: [], 500: [], 600: []}


def test_a_member_that_leaves_takes_its_group_with_it_only_when_it_is_the_last(bench):
    bench.declare("s")
    queries = [bench.register(f":u{i} :p ?o", "s RANGE 100ms") for i in range(3)]
    bench.advance("s", 0)
    queries[1].stop()
    bench.push("s", 50, "u0 p x", "u1 p y", "u2 p z")
    bench.advance("s", 100)
    assert [timeline(q) for q in queries] == [{100: ["x"]}, {}, {100: ["z"]}]
    queries[0].stop()
    assert groups(bench) == 1
    queries[2].stop()
    assert groups(bench) == 0
    assert bench.engine.stats()["windows"] == 0


def test_count_windows_of_different_points_never_merge(bench):
    bench.declare("s")
    window = "s TRIPLES 2 STEP 2"
    first = bench.register(":x :p ?o", window)
    bench.push("s", 50, "x p a")
    bench.advance("s", 100)
    second = bench.register(":x :p ?o", window)
    for i, time in enumerate(range(150, 650, 100)):
        bench.push("s", time, f"x p v{i}")
    bench.advance("s", 700)
    assert first._member.cohort is not second._member.cohort
    assert timeline(first) == {150: ["a", "v0"], 350: ["v1", "v2"], 550: ["v3", "v4"]}
    assert timeline(second) == {250: ["v0", "v1"], 450: ["v2", "v3"]}


def test_windows_are_shared_by_groups_with_the_same_streams(bench):
    bench.declare("s", "t")
    for body in (":x :p ?o", ":x :q ?o", "?s :r ?o"):
        bench.register(body, "s RANGE 1s STEP 100ms")
    assert bench.engine.stats()["windows"] == 0  # nobody knows P yet
    bench.advance(None, 0)
    assert bench.engine.stats()["windows"] == 1
    bench.register("?s :r ?o", "s RANGE 1s STEP 100ms", "t RANGE 1s STEP 100ms")
    assert bench.engine.stats()["windows"] == 3


def test_windows_of_groups_with_other_streams_share_content_until_one_lags(bench):
    bench.declare("s", "t")
    alone = bench.register(":x :p ?o", "s RANGE 300ms STEP 100ms")
    both = bench.register(":x :p ?o", "s RANGE 300ms STEP 100ms", "t RANGE 300ms STEP 100ms")
    bench.advance(None, 0)
    of_s = [next(w for w in q._member.cohort.windows if w.stream.iri == "urn:s") for q in (alone, both)]
    assert of_s[0] is not of_s[1]
    bench.push("s", 50, "x p a")
    bench.advance(None, 100)
    assert of_s[0].content is of_s[1].content
    for i, time in enumerate((150, 250, 350, 450, 550)):
        bench.push("s", time, f"x p v{i}")
    bench.advance("s", 600)  # `alone` goes on, and what it no longer holds must wait for `both`
    bench.advance("t", 600)
    assert of_s[0].content is not of_s[1].content
    rows = timeline(both)
    assert timeline(alone) == rows
    assert rows[300] == ["a", "v0", "v1"]


def test_ten_thousand_members_cost_one_block_an_instant(bench):
    bench.declare("s")
    queries = [bench.register(f":u{i} :p ?o", "s RANGE 100ms") for i in range(300)]
    bench.advance("s", 0)
    bench.advance("s", 1000)
    log = queries[0]._member.cohort.log
    assert len(log) == 10
    for query in queries[:-1]:
        query.poll()
    assert len(log) == 10
    queries[-1].poll()
    assert len(log) == 0
