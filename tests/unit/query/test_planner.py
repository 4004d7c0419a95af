from __future__ import annotations

from dataclasses import replace

import pytest

from penstock.errors import QueryError
from penstock.query.algebra.tree import (
    AggregateCall,
    Bgp,
    Call,
    Exists,
    Extend,
    Filter,
    Graph,
    Group,
    Iri,
    Join,
    LeftJoin,
    Minus,
    Project,
    Union,
    Variable,
)
from penstock.query.ir import ContinuousQuery, Dataset, Form, TimeRange, WindowClause
from penstock.query.planner import plan
from penstock.query.resolve import resolve
from penstock.query.templates import parametrise
from unit.query.planning_support import EX, MadeUpCatalogue, bgp, operators, pipeline, term, triple


def select(algebra, *names, **more):
    variables = tuple(map(Variable, names))
    return ContinuousQuery("", Form.SELECT, Project(algebra, variables), variables, **more)


def window(name, *, in_default=False):
    return WindowClause(EX + name, EX + name, TimeRange(1000, 100), in_default)


def compile_(query, catalogue=None, **options):
    return plan(query, catalogue or MadeUpCatalogue(), grouped=False, **options)


def scans(physical):
    return [step for step in pipeline(physical.spec["root"]) if step["op"] == "scan"]


def test_the_most_selective_pattern_comes_first():
    catalogue = MadeUpCatalogue({(0, "type"): (10000, 5000, 10), (0, "member"): (100, 50, 20)})
    physical = compile_(select(bgp("?x type ?t", "?x member ?y"), "x"), catalogue)
    assert [step["p"]["id"] for step in scans(physical)] == [
        catalogue.term_id(term("member")),
        catalogue.term_id(term("type")),
    ]


def test_an_edge_between_two_windows_is_tested_last():
    """L5: photo tags, then likes, then knows as an edge test, not an expansion of every friend."""
    catalogue = MadeUpCatalogue(
        {(0, "knows"): (19200, 1000, 1000), (1, "usertag"): (200, 100, 80), (2, "like"): (300, 100, 200)}
    )
    algebra = Join(
        Join(Graph(term("photo_stream"), bgp("?photo usertag ?f1")), bgp("?f1 knows ?f2")),
        Graph(term("like_stream"), bgp("?f2 like ?photo")),
    )
    query = select(
        algebra,
        "f1",
        "f2",
        "photo",
        windows=(window("photo_stream"), window("like_stream")),
        dataset=Dataset((Iri("urn:x-penstock:stored"),)),
    )
    physical = compile_(query, catalogue)
    assert scans(physical)[-1]["p"]["id"] == catalogue.term_id(term("knows"))


def test_parts_that_share_no_variable_are_explored_apart_and_crossed_last():
    body = bgp("?x type <t1>", "?y type <t2>", "?x member ?m", "?y member ?n")
    both = Filter(body, Call("<", (Variable("m"), Variable("n"))))
    root = compile_(select(Filter(both, Call("isiri", (Variable("n"),))), "x")).spec["root"]["in"]
    assert (root["op"], root["in"]["op"]) == ("filter", "join")  # what compares the parts comes after both
    sides = [[step["op"] for step in pipeline(root["in"][side])] for side in ("left", "right")]
    assert sorted(sides) == [["seed", "scan", "scan"], ["seed", "scan", "scan", "filter"]]


def test_a_filter_runs_as_soon_as_its_variables_are_bound():
    catalogue = MadeUpCatalogue({(0, "p"): (10, 10, 10), (0, "q"): (1000, 10, 1000)})
    condition = Call(">", (Variable("y"), term('"1"')))
    physical = compile_(select(Filter(bgp("?x p ?y", "?x q ?z"), condition), "x"), catalogue)
    assert operators(physical.spec["root"]) == ["seed", "scan", "filter", "scan", "project"]


def test_optional_is_correlated_where_that_is_the_same():
    physical = compile_(select(LeftJoin(bgp("?x p ?y"), bgp("?y q ?z"), None), "x", "z"))
    assert operators(physical.spec["root"]) == ["seed", "scan", "optional", "project"]


def test_an_optional_that_is_not_well_designed_is_computed_on_its_own():
    inner = LeftJoin(bgp("?y q ?z"), bgp("?z r ?x"), None)
    physical = compile_(select(LeftJoin(bgp("?x p ?w"), inner, None), "x", "z"))
    assert operators(physical.spec["root"]) == ["seed", "scan", "leftjoin", "project"]


def test_a_scan_never_looks_up_a_cell_that_may_be_unbound():
    algebra = Join(LeftJoin(bgp("?x p ?y"), bgp("?y q ?z"), None), bgp("?z r ?w"))
    physical = compile_(select(algebra, "x", "w"))
    for step in pipeline(physical.spec["root"]):
        if step["op"] == "join":
            break
        assert step["op"] in ("seed", "scan", "optional")
    else:
        pytest.fail("no join")


def test_union_starts_from_the_rows_on_its_left():
    algebra = Join(bgp("a p ?x"), Union((bgp("?x q ?y"), bgp("?x r ?y"))))
    physical = compile_(select(algebra, "x", "y"))
    assert operators(physical.spec["root"]) == ["seed", "scan", "lateral", "project"]


def test_variables_hidden_by_a_sub_select_are_others():
    inner = Project(bgp("?x p ?hidden"), (Variable("x"),))
    physical = compile_(select(Join(bgp("?x q ?hidden"), inner), "x", "hidden"))
    assert physical.spec["slots"] == 3


def test_exists_sees_the_outer_bindings():
    inner = Filter(bgp("?x q ?z"), Call("=", (Variable("z"), Variable("y"))))
    physical = compile_(select(Filter(bgp("?x p ?y"), Exists(inner, negated=True)), "x"))
    assert operators(physical.spec["root"]) == ["seed", "scan", "semijoin", "project"]
    semijoin = physical.spec["root"]["in"]
    assert operators(semijoin["inner"]) == ["outer", "scan", "filter"]
    assert semijoin["anti"] is True


def test_exists_under_or_becomes_a_sub_plan():
    condition = Call("or", (Exists(bgp("?x q ?z"), negated=False), Call("bound", (Variable("x"),))))
    physical = compile_(select(Filter(bgp("?x p ?y"), condition), "x"))
    assert len(physical.spec["subplans"]) == 1


def test_minus_without_shared_variables_removes_nothing():
    physical = compile_(select(Minus(bgp("?x p ?y"), bgp("?a q ?b")), "x"))
    assert operators(physical.spec["root"]) == ["seed", "scan", "project"]


def test_a_group_of_queries_shares_one_plan_that_starts_from_its_parameters():
    first = select(bgp("alice knows ?f"), "f", windows=(window("stream", in_default=True),))
    second = select(bgp("bob knows ?f"), "f", windows=(window("stream", in_default=True),))
    (one, constants), (two, others) = parametrise(first), parametrise(second)
    assert one == two
    assert hash(one) == hash(two)
    assert (constants, others) == ((term("alice"),), (term("bob"),))
    physical = plan(one, MadeUpCatalogue(), grouped=True)
    assert physical.spec["seed"] == [0, 1]
    assert scans(physical)[0]["s"] == {"var": 1}
    assert physical.member == 0


def test_literals_that_are_compared_are_parameters_and_classes_of_functions_are_not():
    condition = Call("and", (Call(">", (Variable("y"), term('"1"'))), Call("regex", (Variable("y"), term('"a"')))))
    _, constants = parametrise(select(Filter(bgp("?x p ?y"), condition), "x"))
    assert constants == (term('"1"'),)


def test_members_without_matches_get_their_row_of_an_aggregate():
    group = Group(bgp("alice knows ?f"), (), ((Variable("n"), AggregateCall("count", None)),), implicit=True)
    template, _ = parametrise(select(group, "n", windows=(window("stream", in_default=True),)))
    physical = plan(template, MadeUpCatalogue(), grouped=True)
    node = physical.spec["root"]["in"]
    assert node["op"] == "group"
    assert node["implicit"] is True
    assert node["keys"] == physical.spec["seed"]


def test_default_graph_is_the_windows_that_were_merged_and_nothing_else():
    physical = compile_(select(bgp("?x p ?y"), "x", windows=(window("stream", in_default=True),)))
    assert scans(physical)[0]["dataset"] == [{"src": 1}]


def test_without_any_default_the_stored_graph_is_it():
    physical = compile_(select(bgp("?x p ?y"), "x", windows=(window("stream"),)))
    assert scans(physical)[0]["dataset"] == [{"src": 0, "graphs": [0]}]


def test_graph_with_nothing_to_scan_lists_the_graphs():
    physical = compile_(select(Graph(Variable("g"), Bgp(())), "g"))
    assert "graphs" in operators(physical.spec["root"])


def test_bind_on_an_outer_variable_is_computed_apart():
    inner = Extend(bgp("?x q ?z"), Variable("w"), Variable("y"))
    physical = compile_(select(Join(bgp("?x p ?y"), inner), "x", "w"))
    assert "join" in operators(physical.spec["root"])


def test_unknown_streams_and_graphs_are_refused_with_their_position():
    query = select(bgp("?x p ?y"), "x", windows=(window("stream", in_default=True),))
    text = "SELECT ?x\nFROM <http://ex.org/unknown>"
    with pytest.raises(QueryError) as caught:
        resolve(replace(query, text=text, dataset=Dataset((Iri(EX + "unknown", at=15),))), MadeUpCatalogue())
    assert (caught.value.line, caught.value.column) == (2, 6)


def test_counts_that_moved_ask_for_a_new_plan():
    catalogue = MadeUpCatalogue({(0, "p"): (100, 10, 10)})
    physical = compile_(select(bgp("?x p ?y"), "x"), catalogue)
    assert not physical.replan_needed(catalogue)
    catalogue.stats[0, "p"] = (100000, 10, 10)
    assert physical.replan_needed(catalogue)


def test_explain_shows_estimates_and_actual_figures():
    physical = compile_(select(Bgp((triple("?x p ?y"),)), "x"))
    text = physical.render(*({node["id"]: figure for node in pipeline(physical.spec["root"])} for figure in (7, 1500)))
    assert "scan ?x <http://ex.org/p> ?y [stored]" in text
    assert "actual 7 rows, 1.5 µs" in text


def test_exists_under_an_unbound_cell_sees_what_is_bound_and_compares_the_rest():
    rows = LeftJoin(bgp("?x p ?y"), bgp("?y q ?z"), None)
    inner = Filter(bgp("?x q ?z"), Call("!=", (Variable("z"), Variable("y"))))
    physical = compile_(select(Filter(rows, Exists(inner, negated=False)), "x"))
    semijoin = physical.spec["root"]["in"]
    assert operators(semijoin["inner"]) == ["outer", "scan", "filter", "filter"]


def test_columns_are_dropped_after_their_last_use():
    catalogue = MadeUpCatalogue({(0, "a"): (10, 10, 10), (0, "b"): (100, 100, 100), (0, "c"): (1000, 1000, 1000)})
    physical = compile_(select(bgp("?x a ?y", "?y b ?z", "?z c ?w"), "w"), catalogue)
    a, b, c = scans(physical)
    (w,) = (slot for _, slot in physical.outputs)
    assert [step["p"]["id"] for step in (a, b, c)] == [catalogue.term_id(term(name)) for name in "abc"]
    y, z = b["s"]["var"], c["s"]["var"]
    assert [step["keep"] for step in (a, b, c)] == [sorted({y, z, w}), sorted({z, w}), [w]]


def test_parameters_of_a_group_end_where_they_are_looked_up():
    query = select(Bgp((triple("?x a <alice>"),)), "x")
    template, _ = parametrise(query)
    physical = plan(template, MadeUpCatalogue(), grouped=True)
    (step,) = scans(physical)
    shown = [physical.member, dict(physical.outputs)["x"]]
    assert physical.spec["root"]["slots"] == shown
    assert step["keep"] == sorted(shown)
    assert physical.parameters[0] not in step["keep"]


def test_a_filter_that_tests_a_pattern_is_given_all_columns():
    catalogue = MadeUpCatalogue()
    tested = Filter(bgp("?x a ?y"), Exists(bgp("?y b ?z"), False))
    (step,) = (step for step in scans(compile_(select(tested, "x"), catalogue)) if step["p"]["id"])
    assert "keep" not in step
    compared = Filter(bgp("?x a ?y"), Call("=", (Variable("y"), term("b"))))
    physical = compile_(select(compared, "x"), catalogue)
    (step,) = scans(physical)
    assert step["keep"] == sorted({dict(physical.outputs)["x"], step["o"]["var"]})
