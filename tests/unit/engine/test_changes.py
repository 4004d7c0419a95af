"""Added and removed rows of the evaluations of queries with `changes`."""

from __future__ import annotations

import json
import re
from collections import Counter
from unittest import mock

import numpy as np
import pytest
import rdflib
from rdflib.namespace import RDF

import penstock
from penstock.core import _native as native
from penstock.engine.answers import answer_versions
from penstock.engine.answers.answer_versions import AnswerVersion
from penstock.engine.answers.json_lines import json_line
from penstock.engine.answers.membership import Membership
from penstock.engine.answers.rows import Changes, Rows
from support.bench import rows, text

WINDOW = "s RANGE 300ms STEP 100ms"
NEVER = (1 << 64) - 1


@pytest.fixture(params=[0, NEVER], ids=["updated", "complete"])
def _maintained(request):
    usual = native.maintain_from(request.param)
    yield
    native.maintain_from(usual)


def changes_of(query):
    return {e.time: (rows(e.added), rows(e.removed)) for e in query.poll()}


def register(bench, body="?s :p ?o", *windows, name=None, **more):
    return bench.engine.register(text(body, *(windows or (WINDOW,)), **more), name=name, changes=True)


@pytest.mark.usefixtures("_maintained")
def test_each_evaluation_has_what_it_changes_in_the_previous_answer(bench):
    bench.declare("s", timing="all")
    query = register(bench, select="SELECT ?s")
    bench.advance("s", 100)
    for time in (150, 250, 350, 450):
        bench.push("s", time, f"a{time} p x", "b p y", f"c p z{time}")
    bench.advance("s", 900)
    assert changes_of(query) == {
        200: (["a150", "b", "c"], []),
        300: (["a250", "c"], []),
        400: (["a350", "c"], []),
        500: (["a450"], ["a150"]),
        600: ([], ["a250", "c"]),
        700: ([], ["a350", "c"]),
        800: ([], ["a450", "b", "c"]),
        900: ([], []),
    }


@pytest.mark.usefixtures("_maintained")
def test_an_ask_has_the_change_of_its_boolean(bench):
    bench.declare("s", timing="all")
    query = register(bench, ":a :p ?o", select="ASK")
    bench.advance("s", 100)
    for time in (250, 350, 850):
        bench.push("s", time, f"a p x{time}")
    bench.advance("s", 1100)
    found = {e.time: (e.added, e.removed, e.answer) for e in query.poll()}
    assert all(isinstance(value, bool) for values in found.values() for value in values)
    assert found == {
        200: (False, False, False),
        300: (True, False, True),
        400: (False, False, True),
        500: (False, False, True),
        600: (False, False, True),
        700: (False, True, False),
        800: (False, False, False),
        900: (True, False, True),
        1000: (False, False, True),
        1100: (False, False, True),
    }


@pytest.mark.usefixtures("_maintained")
def test_a_construct_has_the_triples_that_its_graph_gains_and_loses(bench):
    """A triple goes with the last solution that gives it."""
    bench.declare("s", timing="all")
    query = register(bench, "?s :p ?o", select="CONSTRUCT { ?s a :seen . :all :has ?o }")
    for time, name in ((150, "a"), (250, "b"), (350, "c")):
        bench.push("s", time, f"{name} p x", f"a p y{time}")
    bench.advance("s", 700)
    found = query.poll()
    a, b, c = ((name, str(RDF.type), "seen") for name in "abc")
    x = ("all", "has", "x")
    assert {e.time: (rows(e.added), rows(e.removed)) for e in found} == {
        200: (sorted([a, x, ("all", "has", "y150")]), []),
        300: (sorted([b, ("all", "has", "y250")]), []),
        400: (sorted([c, ("all", "has", "y350")]), []),
        500: ([], [("all", "has", "y150")]),
        600: ([], sorted([b, ("all", "has", "y250")])),
        700: ([], sorted([a, c, x, ("all", "has", "y350")])),
    }
    assert all(isinstance(side, rdflib.Graph) for e in found for side in (e.added, e.removed))
    held = set()
    for e in found:
        held = held - set(e.removed) | set(e.added)
        assert held == set(e.answer)


def test_blank_nodes_of_a_template_are_new_in_each_evaluation(bench):
    bench.declare("s", timing="all")
    query = register(bench, "?s :p ?o", select="CONSTRUCT { ?s :q [ :r ?o ] }")
    bench.push("s", 50, "a p x")
    bench.advance("s", 400)
    held = set()
    for e in query.poll():
        assert set(e.removed) == held
        held = set(e.added)
        assert held == set(e.answer)


def test_members_of_a_group_have_triples_and_booleans_of_their_own(bench):
    bench.declare("s", timing="all")
    asks = [register(bench, f":{name} :p ?o", select="ASK", name=f"ask{name}") for name in "abc"]
    graphs = [register(bench, f":{name} :p ?o", select="CONSTRUCT { :x :y ?o }", name=f"g{name}") for name in "abc"]
    bench.push("s", 50, "a p x", "b p y")
    bench.push("s", 250, "a p x", "c p z")
    bench.advance("s", 600)
    assert [[e.time for e in query.poll() if e.added] for query in asks] == [[100], [100], [300]]
    found = [changes_of(query) for query in graphs]
    assert [{time: both for time, both in each.items() if both != ([], [])} for each in found] == [
        {100: ([("x", "y", "x")], []), 600: ([], [("x", "y", "x")])},
        {100: ([("x", "y", "y")], []), 400: ([], [("x", "y", "y")])},
        {300: ([("x", "y", "z")], []), 600: ([], [("x", "y", "z")])},
    ]


def test_lines_of_an_ask_and_of_a_construct_have_changes_in_the_form_of_the_answer(bench):
    bench.declare("s", timing="all")
    ask, graph = register(bench, ":a :p ?o", select="ASK"), register(bench, ":a :p ?o", select="CONSTRUCT { :a :q ?o }")
    bench.push("s", 50, "a p x")
    bench.advance("s", 500)
    first, *_, last = ask.poll()
    line = json.loads(json_line(first))
    assert (line["added"], line["removed"]) == ({"head": {}, "boolean": True}, {"head": {}, "boolean": False})
    assert "boolean" not in line
    line = json.loads(json_line(last, whole=True))
    assert line.keys() == {"query", "time", "windows", "snapshot", "attempt", "added", "removed", "head", "boolean"}
    first, *_, last = graph.poll()
    line = json.loads(json_line(first, whole=True))
    assert (line["added"], line["removed"]) == ({"graph": "<urn:a> <urn:q> <urn:x> .\n"}, {"graph": ""})
    assert line["graph"] == line["added"]["graph"]
    assert "graph" not in json.loads(json_line(last))


@pytest.mark.usefixtures("_maintained")
@pytest.mark.parametrize("read", ["at once", "later", "never"])
def test_the_answer_is_that_of_its_own_instant_whenever_it_is_read(bench, read):
    bench.declare("s", timing="all")
    query, plain = register(bench), bench.register("?s :p ?o", WINDOW)
    taken = []
    for time in range(50, 2000, 50):
        bench.push("s", time, f"a{time % 7} p x{time % 300}", f"b p y{time}")
        for evaluation in query.poll():
            taken.append(evaluation)
            if read == "at once" or (read == "later" and len(taken) % 3):
                assert evaluation.answer
    expected = {e.time: rows(e.answer) for e in plain.poll()}
    assert {e.time: rows(e.answer) for e in reversed(taken)} == expected
    assert len(expected) > 10


def test_a_query_in_a_group_has_changes_of_its_own(bench):
    bench.declare("s", timing="all")
    bench.advance("s", 100)
    first = register(bench, ":a :p ?o", name="a")
    second = register(bench, ":b :p ?o", name="b")
    bench.push("s", 150, "a p x", "b p y")
    bench.advance("s", 200)
    third = register(bench, ":c :p ?o", name="c")
    bench.push("s", 250, "a p z", "c p w")
    bench.advance("s", 300)
    second.stop()
    bench.advance("s", 700)
    assert list(changes_of(first).items())[:5] == [
        (200, (["x"], [])),
        (300, (["z"], [])),
        (400, ([], [])),
        (500, ([], ["x"])),
        (600, ([], ["z"])),
    ]
    assert changes_of(second) == {200: (["y"], []), 300: ([], [])}
    assert {time: found for time, found in changes_of(third).items() if found != ([], [])} == {
        300: (["w"], []),
        600: ([], ["w"]),
    }
    assert len(list(bench.engine._runtime.registry.groups)) == 1


def test_equal_texts_with_and_without_changes_are_in_different_groups(bench):
    bench.declare("s", timing="all")
    assert [register(bench, name="a").changes, bench.register("?s :p ?o", WINDOW).changes] == [True, False]
    assert len(list(bench.engine._runtime.registry.groups)) == 2


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"select": "CONSTRUCT { ?s :q ?o }", "header": "REGISTER STREAM <urn:d> AS"},
            "`changes` and a derived stream exclude each other",
        ),
        ({"header": "REGISTER ISTREAM q AS"}, "`changes` and ISTREAM exclude each other"),
        ({"header": "REGISTER DSTREAM q AS"}, "`changes` and DSTREAM exclude each other"),
        ({"header": "REGISTER QUERY q REPORT NONEMPTY AS"}, "`changes` and REPORT NONEMPTY exclude each other"),
    ],
)
def test_queries_that_cannot_report_changes_are_refused(bench, settings, message):
    bench.declare("s", timing="all")
    with pytest.raises(penstock.QueryError, match=message) as error:
        register(bench, **settings)
    assert error.value.line == 1
    assert not bench.engine.queries


def test_without_changes_there_are_no_added_and_removed_rows(bench):
    bench.declare("s", timing="all")
    query = bench.register("?s :p ?o", WINDOW)
    bench.push("s", 50, "a p x")
    bench.advance("s", 100)
    (evaluation,) = query.poll()
    assert not evaluation.has_changes
    for name in ("added", "removed"):
        with pytest.raises(penstock.PenstockError, match="registered with changes=True"):
            getattr(evaluation, name)


def test_an_error_has_no_changes_and_the_next_evaluation_compares_with_the_last_answer(make_bench):
    bench = make_bench(limits=penstock.Limits(evaluation_memory_mb=1))
    bench.declare("s", timing="all")
    query = register(bench, "?s :p ?o . ?a :q ?x . ?b :q ?y . ?c :q ?z", select="SELECT ?s ?o")
    bench.push("s", 50, "a p x", "i q j")
    bench.advance("s", 100)
    bench.push("s", 150, "b p y", *(f"i{n} q j" for n in range(100)))
    bench.advance("s", 400)
    bench.push("s", 450, "c p z", "i q j")
    bench.advance("s", 500)
    evaluations = query.poll()
    failed = [e for e in evaluations if e.error is not None]
    assert {e.time for e in failed} == {200, 300, 400}
    for name in ("added", "removed", "answer"):
        with pytest.raises(penstock.LimitError):
            getattr(failed[0], name)
    assert json.loads(json_line(failed[0])).keys() >= {"error"}
    assert rows(evaluations[0].added) == [("a", "x")]
    assert (rows(evaluations[-1].added), rows(evaluations[-1].removed)) == ([("c", "z")], [("a", "x")])


def test_after_a_gap_an_evaluation_compares_with_the_one_before_it(bench):
    bench.declare("s", timing="all")
    query = register(bench)
    bench.push("s", 50, "a p x")
    bench.advance("s", 100)
    bench.push("s", 150, "b p y")
    bench.advance("s", 1000, skip=True)
    bench.push("s", 1050, "c p z")
    bench.advance("s", 1100)
    assert [(gap.after, gap.until) for gap in query.gaps] == [(100, 1000)]
    assert changes_of(query) == {100: ([("a", "x")], []), 1100: ([("c", "z")], [("a", "x")])}


@pytest.mark.usefixtures("_maintained")
def test_the_order_of_an_answer_is_retained(bench):
    bench.declare("s", timing="all")
    query = register(bench, after="ORDER BY DESC(?o) LIMIT 2", select="SELECT ?o")
    bench.advance("s", 100)
    for time, name in ((150, "b"), (250, "d"), (350, "c"), (450, "a")):
        bench.push("s", time, f"s p {name}")
    bench.advance("s", 500)
    found = query.poll()
    assert [[str(row["o"])[-1] for row in e.answer] for e in found] == [["b"], ["d", "b"], ["d", "c"], ["d", "c"]]
    assert [(rows(e.added), rows(e.removed)) for e in found] == [
        (["b"], []),
        (["d"], []),
        (["c"], ["b"]),
        ([], []),
    ]


def play(bench, restart_at, *, poll, body, **more):
    bench.declare("s", timing="all", lateness_ms=50)
    register(bench, body, "s RANGE 700ms STEP 100ms", name="q", **more)
    seen = {}
    for step in range(40):
        if step == restart_at:
            bench.reopen()
        bench.push("s", 37 + 61 * step, f"a{step % 5} p b{step % 3}", f"c{step} p b{step % 3}")
        if poll(step):
            for e in bench.engine.queries["q"].poll():
                seen[e.time] = rows(e.added), rows(e.removed), rows(e.answer)
    return seen


BODIES = {
    "scan": {"body": "?s :p ?o"},
    "count": {"body": "?s :p ?o", "select": "SELECT ?o (COUNT(*) AS ?n)", "after": "GROUP BY ?o"},
    "computed": {"body": '?s :p ?o BIND(CONCAT("a long text about ", STR(?s)) AS ?t)'},
    "limited": {"body": "?s :p ?o", "after": "ORDER BY ?s LIMIT 3"},
    "graph": {"body": "?s :p ?o", "select": "CONSTRUCT { ?s :q ?o . ?o a :seen }"},
    "ask": {"body": "?s :p :b0 . ?t :p :b1 FILTER(STRENDS(STR(?s), '0') && STRENDS(STR(?t), '0'))", "select": "ASK"},
}


@pytest.mark.usefixtures("_maintained")
@pytest.mark.parametrize("restart_at", [0, 1, 20, 39])
@pytest.mark.parametrize("polled", ["always", "last"])
@pytest.mark.parametrize("scene", BODIES)
def test_a_restart_changes_no_added_and_removed_rows(make_bench, tmp_path, scene, polled, restart_at):
    def poll(step):
        return polled == "always" or step == 39

    expected = play(make_bench(), None, poll=poll, **BODIES[scene])
    assert sum(any(removed) for _, removed, _ in expected.values()) > (1 if scene == "ask" else 5)
    assert play(make_bench(data_dir=tmp_path), restart_at, poll=poll, **BODIES[scene]) == expected


def test_the_write_ahead_log_has_the_option(make_bench, tmp_path):
    bench = make_bench(data_dir=tmp_path / "a", durability="commit")
    bench.declare("s", timing="all")
    register(bench, name="q")
    with penstock.Engine(data_dir=tmp_path / "a", read_only=True) as copy:
        assert copy.queries["q"].changes


def test_pending_versions_share_their_rows_in_memory_and_in_a_checkpoint(make_bench, tmp_path):
    """A hundred pending evaluations of 5,000 rows each take far less than a hundred times 5,000 rows."""
    usual = native.maintain_from(0)
    try:
        bench = make_bench(data_dir=tmp_path)
        bench.declare("s", timing="all", max_ahead_ms=1 << 40)
        query = register(bench, "?s :p ?o", "s RANGE 1000s STEP 100ms")
        bench.push("s", 50, *(f"a{n} p b" for n in range(5000)))
        bench.advance("s", 100)
        for step in range(1, 100):
            bench.push("s", 100 * step + 50, f"c{step} p b")
        bench.advance("s", 10_000)
        assert bench.engine._runtime.schedule.unpolled.bytes < 1 << 20
        for _ in range(2):  # the second checkpoint is that of restored versions
            bench.reopen()
            sizes = [path.stat().st_size for path in tmp_path.rglob("arrays.bin")]
            assert max(sizes) < 3 << 20
        query = next(iter(bench.engine.queries.values()))
        found = query.poll()
        assert [len(e.added) for e in found] == [5000, *(1 for _ in range(99))]
        assert [len(e.answer) for e in found] == list(range(5000, 5100))
        assert bench.engine._runtime.schedule.unpolled.bytes == 0
    finally:
        native.maintain_from(usual)


def retain(bench, *, changes):
    """Push new names at each step; some evaluations are retained. Returns them, and the number of forgotten terms."""
    bench.declare("s", timing="all")
    query = bench.engine.register(text("?s :p ?o", "s RANGE 1s STEP 500ms"), changes=changes)
    held = []
    for step in range(600):
        bench.push("s", 100 * step + 50, f"some-name-{step} p b", "stays p b")
        polled = query.poll() if step % 7 == 0 else []
        if step in (301, 308):
            held += polled
        del polled
    return held, bench.engine._runtime.forgetting.forgotten


@pytest.mark.usefixtures("_maintained")
def test_terms_are_retained_as_long_as_an_evaluation_and_no_longer(make_bench):
    held, forgotten = retain(make_bench(), changes=True)
    assert all(len(e.answer) == 11 for e in held)
    added, removed = (sorted(name for e in held for name, _ in rows(getattr(e, c))) for c in ("added", "removed"))
    first = min(e.time for e in held) // 100 - 5
    assert added == sorted(f"some-name-{n}" for n in range(first, first + len(added)))
    assert removed == sorted(f"some-name-{n}" for n in range(first - 10, first - 10 + len(removed)))
    assert forgotten > 180
    assert retain(make_bench(), changes=False)[1] - forgotten < 64  # ticks between two collections


@pytest.mark.usefixtures("_maintained")
def test_terms_of_pending_evaluations_are_retained(bench):
    bench.declare("s", timing="all")
    query = register(bench, "?s :p ?o", "s RANGE 1s STEP 500ms")
    for step in range(300):
        bench.push("s", 100 * step + 50, f"some-name-{step} p b", "stays p b")
    bench.engine._runtime.forgetting.sweep()
    pending = query.poll()
    assert sum(len(rows(e.removed)) for e in pending) > 200
    assert {name for e in pending for name, _ in rows(e.added)} >= {f"some-name-{n}" for n in range(290)}
    assert all(len(rows(e.answer)) == 11 for e in pending[3:])


def test_lines_have_changes_and_on_request_the_whole_answer(bench):
    bench.declare("s", timing="all")
    query = register(bench, select="SELECT ?s")
    bench.push("s", 50, "a p x")
    bench.push("s", 150, "b\u0085 p y")
    bench.advance("s", 200)
    first, second = query.poll()
    line = json_line(second)
    assert len(line.decode().splitlines()) == 1
    found = json.loads(line)
    assert found.keys() == {"query", "time", "windows", "snapshot", "attempt", "added", "removed"}
    assert found["added"] == json.loads(second.added.to_json())
    assert found["removed"] == {"head": {"vars": ["s"]}, "results": {"bindings": []}}
    whole = json.loads(json_line(second, whole=True))
    assert whole["head"] == {"vars": ["s"]}
    assert len(whole["results"]["bindings"]) == 2
    assert len(json.loads(json_line(first))["added"]["results"]["bindings"]) == 1


def test_explain_shows_how_the_changes_were_found(bench):
    bench.declare("s", timing="all")
    query = register(bench)
    bench.push("s", 50, "a p x")
    bench.advance("s", 300)
    assert "changes from complete answers: the input is small" in bench.engine.explain(query)


@pytest.mark.parametrize("select", ["SELECT ?o", "SELECT DISTINCT ?o"])
def test_if_no_lookup_has_changed_an_answer_has_no_changes_and_is_not_compared(bench, select):
    bench.declare("s", timing="all")
    query = register(bench, ":a :p ?o", "s RANGE 2s STEP 100ms", select=select)
    bench.advance("s", 0)
    bench.push("s", 50, "a p x", "a p y")
    for step in range(1, 30):
        bench.push("s", 100 * step + 50, f"b p y{step}", *(["a p z"] if step == 15 else []))
    bench.advance("s", 3000)
    cohort = query._member.cohort
    assert cohort.last_run.reused
    assert cohort.predecessor.answer_id != 0
    found = query.poll()
    changes = {e.time: (len(e.added), len(e.removed)) for e in found if e.added or e.removed}
    assert changes == {100: (2, 0), 1600: (1, 0), 2100: (0, 2)}
    assert [len(e.answer) for e in found] == [2] * 15 + [3] * 5 + [1] * 10
    rows = [e._block.changes.now.parts[0].columns[-1] for e in found[5:14]]
    assert all(column is rows[0] for column in rows), "unchanged versions share their rows"


@pytest.mark.parametrize(
    "settings",
    [
        {"select": "SELECT DISTINCT ?o"},
        {"select": "SELECT ?o (COUNT(*) AS ?n)", "after": "GROUP BY ?o HAVING (COUNT(*) > 1)"},
        {"select": "SELECT (COUNT(*) AS ?m) (CONCAT('the long name of ', STR(?m)) AS ?t)"},
        {"select": "CONSTRUCT { ?o a :seen . ?s :of ?o }"},
    ],
)
def test_groups_distinct_rows_and_triples_give_their_changes(bench, settings):
    """The answer is neither copied nor compared."""
    usual = native.maintain_from(0)
    try:
        bench.declare("s", timing="all")
        query = register(bench, **settings)
        plain = bench.register("?s :p ?o", WINDOW, **settings)
        bench.advance("s", 100)
        said = []
        for step in range(1, 12):
            bench.push("s", 100 * step + 50, f"a{step % 3} p x{step % 2}", f"b{step} p y{step % 4}", f"c p x{step % 5}")
            bench.advance("s", 100 * step + 100)
            said += re.findall(r"changes from (\d+ changed rows|.*)", bench.engine.explain(query))
        assert said[0].startswith("complete answers")
        assert sum("changed rows" in each for each in said) > 6, said
        held = Counter()
        for changed, whole in zip(query.poll(), plain.poll(), strict=True):
            held = held + Counter(rows(changed.added)) - Counter(rows(changed.removed))
            assert held == Counter(rows(whole.answer)) == Counter(rows(changed.answer))
    finally:
        native.maintain_from(usual)


def version(names, **more):
    return AnswerVersion(Membership([]), table(names), **more)


def table(names):
    return Rows(np.ones(len(names), np.uint64), (np.array(list(names), np.uint64),), None)


def test_changes_of_a_version_are_few_parts(monkeypatch):
    monkeypatch.setattr(answer_versions, "_FEW_ROWS", 1 << 30)
    now, expected = version(range(10)), Counter(range(10))
    for step in range(1000):
        now = now.followed_by(Changes(table([step]), table([step] if step % 2 else [])), step)
        expected[step] += 1 - step % 2
        assert len(now.parts[1]) < 16
    empty = now.followed_by(Changes(table([]), table([])), 1)
    assert empty.parts[1] == now.parts[1]
    assert Counter(now.rows.columns[0].tolist()) == +expected
    assert not now.parts[1]


def test_changes_since_a_tracked_version_are_those_of_the_evaluations(monkeypatch):
    first = version(range(10))
    first.track()
    now = first.followed_by(Changes(table([10, 11]), table([0])), 1)
    now = now.followed_by(Changes(table([]), table([])), 2).followed_by(Changes(table([0]), table([10, 1])), 3)
    assert 10 in np.concatenate(now.ids()), "the dictionary retains what was added and removed since"
    assert now.row_count == len(now.rows) == 10
    fresh = version(now.rows.columns[0].tolist())
    for later in (now, fresh):
        changes = later.changes_since(first)
        assert [sorted(rows.columns[0].tolist()) for rows in (changes.added, changes.removed)] == [[11], [1]]
    assert not len(first.changes_since(first))
    now.track()
    same = now.followed_by(Changes(table([]), table([])), 4)
    assert not len(same.changes_since(now))
    compared = mock.Mock(side_effect=answer_versions.difference)
    monkeypatch.setattr(answer_versions, "difference", compared)
    assert len(same.followed_by(Changes(table([7]), table([])), 5).changes_since(now)) == 1
    assert max(len(rows) for call in compared.call_args_list for rows in call.args) == 1, "no complete answers"
