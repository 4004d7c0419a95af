"""Which steps over stores' shards are done in place, and which by fork-join."""

from __future__ import annotations

import json

import pytest

from penstock.query.algebra.tree import Project, Variable
from penstock.query.datasets import Part
from penstock.query.ir import ContinuousQuery, Form, TimeRange, WindowClause
from penstock.query.planner import plan
from penstock.query.planning.cost.placement import MOST_ROWS, Placement, Step
from penstock.query.planning.forks import _ends as ends_of
from penstock.query.planning.relations import Scope
from unit.query.planning_support import EX, MadeUpCatalogue, bgp, operators, pipeline

ONE = (Step(1.0, 1.0),)


def test_a_fork_pays_from_where_its_costs_are_less_on() -> None:
    placement = Placement("auto", ("tcp", "tcp"), 2)
    least = placement.least_rows(ONE, 2, 2)
    assert least is not None
    for rows, pays in ((least - 1, False), (least, True), (4 * least, True)):
        assert (placement.forked_us(rows, ONE, 2, 2) < placement.in_place_us(rows, ONE)) is pays


def test_mapped_nodes_are_read_in_place_for_longer_than_remote_ones() -> None:
    remote = Placement("auto", ("tcp", "tcp"), 2).least_rows(ONE, 2, 2)
    half = Placement("auto", ("shm", "tcp"), 2).least_rows(ONE, 2, 2)
    assert remote is not None
    assert half is not None
    assert remote < half < MOST_ROWS


@pytest.mark.parametrize(("execution", "least"), [("fork-join", 1), ("in-place", None)])
def test_the_setting_decides_whatever_the_costs(execution, least) -> None:
    assert Placement(execution, ("shm",), 2).least_rows(ONE, 2, 2) == least


def compile_(execution, *patterns, grouped=False, stats=None, **more):
    catalogue = MadeUpCatalogue(stats)
    catalogue.placement = Placement(execution, ("tcp", "tcp"), 2)
    query = ContinuousQuery("", Form.SELECT, Project(bgp(*patterns), (Variable("x"),)), (Variable("x"),), **more)
    return plan(query, catalogue, grouped=grouped)


def test_steps_that_look_up_one_variable_are_one_fork() -> None:
    physical = compile_("fork-join", "?x type T", "?x member ?y", "?x age ?z", "?z knows ?w")
    forks = [node for node in pipeline(physical.spec["root"]) if node["op"] == "fork"]
    assert [operators(fork["inner"]) for fork in forks] == [["outer", "scan", "scan"], ["outer", "scan"]]
    there = json.loads(physical.fragments[forks[0]["id"]])
    assert operators(there["root"]) == ["seed", "scan", "scan", "project"]
    assert there["seed"] == [forks[0]["row"], *forks[0]["uses"]] == [forks[0]["row"], forks[0]["key"]]
    assert len(there["root"]["slots"]) == 3  # the row, ?y and ?z


def test_a_scan_that_starts_from_no_row_is_no_fork() -> None:
    assert operators(compile_("fork-join", "?x type T").spec["root"]) == ["seed", "scan", "project"]


def test_windows_are_here() -> None:
    windows = (WindowClause(EX + "stream", EX + "stream", TimeRange(1000, 100), in_default=True),)
    physical = compile_("fork-join", "?x type T", "?x member ?y", windows=windows)
    assert "fork" not in operators(physical.spec["root"])


def test_explain_says_what_either_way_would_cost() -> None:
    few = compile_("auto", "?x type T", "?x member ?y", stats={(0, "type"): (10, 10, 5), (0, "member"): (10, 10, 10)})
    assert "in place: 0.03 ms, by fork-join 2 ms" in few.render()
    many = {(0, "type"): (10**6, 10**6, 1), (0, "member"): (10**7, 10**6, 10**4)}
    assert "fork at ?x's stores from " in compile_("auto", "?x type ?t", "?x member ?y", stats=many).render()


def test_of_groups_the_real_rows_decide() -> None:
    stats = {(0, "type"): (10, 10, 5), (0, "member"): (10, 10, 10)}
    physical = compile_("auto", "?x type T", "?x member ?y", grouped=True, stats=stats)
    (fork,) = (node for node in pipeline(physical.spec["root"]) if node["op"] == "fork")
    assert 1000 < fork["least"] < 10_000


@pytest.mark.parametrize(
    ("text", "graphs", "ends"),
    [
        ("?x member ?y", (0,), ["x", "y"]),
        ("?x ?p ?y", (0,), ["x"]),  # random case 27735
        ("T ?p ?y", (0,), ["y"]),
        ("?x member ?y", "named", ["x"]),
        ("?x member ?y", (1, 2), ["x"]),
    ],
)
def test_a_scan_that_probes_labels_does_so_at_its_subject(text, graphs, ends) -> None:
    (pattern,) = bgp(text).patterns
    assert ends_of(pattern, Scope((Part(0, graphs),)), frozenset("xy")) == ends
