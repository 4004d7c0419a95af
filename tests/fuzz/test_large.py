"""Large texts are planned within their budget, or refused with a place (issue 21, A8): a few on every run, many by `long`."""

from __future__ import annotations

import pytest

import penstock
from fuzz import large
from penstock import QueryLimitError


def test_large_texts_are_planned_within_their_budget_or_refused() -> None:
    tried, faults, slowest = large.run(0, 120, seconds=60)
    assert not faults, "\n".join(faults[:3])
    assert tried > 20
    assert slowest[0] < 3 * large.TIME_S  # processor time; the machine may be busy


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_a_hundred_thousand_large_texts() -> None:
    before = large.peak_mb()
    _, faults, slowest = large.run(1 << 20, 100_000, seconds=3600)
    assert not faults, "\n".join(faults[:3])
    assert slowest[0] < 2 * large.TIME_S
    assert large.peak_mb() - before < 2 * large.MEMORY_MB  # what several texts leave in caches comes on top


@pytest.mark.parametrize(
    ("text", "limit"),
    [
        ("SELECT * { " + " UNION ".join(["{ ?s ?p ?o }"] * 30_000) + " }", "max_query_tokens"),
        ("SELECT * { ?s " + "/".join(["<urn:p>"] * 20_000) + " ?o }", "max_plan_depth"),
        ("SELECT * { " + " UNION ".join(f"{{ ?a{i} <urn:p> ?b{i} }}" for i in range(9_000)) + " }", "planning_memory_mb"),
        ("SELECT * { ?s ?p (" + " 1" * 20_000 + ") }", "max_plan_depth"),
        ("SELECT * " + "{" * 5_000 + "}" * 5_000, "max_nesting"),
        ("SELECT * { ?s ?p ?o FILTER(" + "!(" * 5_000 + "?o" + ")" * 5_001 + " }", "max_nesting"),
    ],
    ids=["unions", "path", "wide union", "list", "groups", "brackets"],
)  # fmt: skip
def test_what_stopped_a_service_is_refused_with_a_place(text: str, limit: str) -> None:
    with large.engine() as engine:
        unlimited = penstock.Limits(planning_timeout_s=0)
        assert unlimited.max_plan_depth == 1_000
        for verb in (engine.explain, engine.query, engine.register):
            if verb == engine.register:
                text = text.replace("SELECT *", f"SELECT * FROM NAMED STREAM <{large.STREAM}> [RANGE 1s]", 1)
            with pytest.raises(QueryLimitError) as caught:
                verb(text)
            assert limit in caught.value.message or "planning_timeout_s" in caught.value.message
            assert caught.value.line == 1
            assert caught.value.column > 1
            assert len(str(caught.value)) < 2_000
