"""What an evaluation costs with windows of 10 s, 100 s and 1,000 s, if the change per step is the same.

Processor time of one evaluation in the core, and of the whole step: the batch closes, the window moves, the query is
evaluated, and its answer is polled. `fresh` in a name: new evaluations, with updates switched off (docs/adr/0078). A
query whose text begins with CHANGES is registered with `changes`: its added and removed rows are taken, and its answer
is not read (docs/adr/0086).

The change of a join can grow with the window, although the change of the windows does not: with a window of 1,000 s, an
added edge joins 20 edges of the other window. The growth is therefore that of the time per changed row, if a longer
window has more changed rows. These are the rows that the changes add to, or remove from, the input of the maintained
operator.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import penstock
from benchmarks.core_time import clock_cost_us, core_times
from benchmarks.harness import Row, check
from penstock.core import _native as native

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding

COMMAND = "python -m benchmarks window_growth"
LENGTHS_S, RATE, STEPS = (10, 100, 1_000), 1_000, 9
S, T, U = "urn:s", "urn:t", "urn:u"
_NEVER = (1 << 64) - 1
_ONE = f"FROM STREAM <{S}> [RANGE %ds STEP 1s] WHERE "
_TWO = (
    f"FROM NAMED WINDOW <urn:v> ON <{S}> [RANGE %ds STEP 1s] FROM NAMED WINDOW <urn:w> ON <{T}> [RANGE %ds STEP 1s] "
    "WHERE "
)
_STORED = f"FROM STREAM <{S}> [RANGE %ds STEP 1s] FROM <urn:x-penstock:stored> WHERE "
QUERIES = {
    "COUNT(*)": "SELECT (COUNT(*) AS ?n) " + _ONE + "{ ?s <urn:p> ?o }",
    "SUM, AVG": "SELECT (SUM(?o) AS ?n) (AVG(?o) AS ?m) " + _ONE + "{ ?s <urn:p> ?o }",
    "COUNT, AVG by 1,000 groups": "SELECT ?o (COUNT(*) AS ?n) (AVG(?o) AS ?m) "
    + _ONE
    + "{ ?s <urn:p> ?o } GROUP BY ?o",
    "MIN, MAX": "SELECT (MIN(?o) AS ?n) (MAX(?o) AS ?m) " + _ONE + "{ ?s <urn:p> ?o }",
    "AVG, MAX by 50,000 groups": "SELECT ?s (AVG(?o) AS ?n) (MAX(?o) AS ?m) "
    + _ONE
    + "{ ?s <urn:p> ?o } GROUP BY ?s HAVING (COUNT(*) > 100)",
    "COUNT(DISTINCT) by 1,000 groups": "SELECT ?o (COUNT(DISTINCT ?s) AS ?n) " + _ONE + "{ ?s <urn:p> ?o } GROUP BY ?o",
    "DISTINCT (1,000 rows)": "SELECT DISTINCT ?o " + _ONE + "{ ?s <urn:p> ?o }",
    "COUNT(DISTINCT *)": "SELECT (COUNT(DISTINCT *) AS ?n) " + _ONE + "{ ?s <urn:p> ?o }",
    "ORDER BY, LIMIT 10": "SELECT ?s ?o " + _ONE + "{ ?s <urn:p> ?o } ORDER BY DESC(?o) ?s LIMIT 10",
    "ORDER BY, LIMIT 10 OFFSET 90": "SELECT ?s ?o " + _ONE + "{ ?s <urn:p> ?o } ORDER BY ?o ?s LIMIT 10 OFFSET 90",
    "ORDER BY, all rows": "SELECT ?s ?o " + _ONE + "{ ?s <urn:p> ?o } ORDER BY DESC(?o) ?s",
    "COUNT by 50,000 groups, ORDER BY, LIMIT 10": "SELECT ?s (COUNT(*) AS ?n) "
    + _ONE
    + "{ ?s <urn:p> ?o } GROUP BY ?s ORDER BY DESC(?n) LIMIT 10",
    "FILTER (0.1 %), COUNT": "SELECT (COUNT(*) AS ?n) " + _ONE + "{ ?s <urn:p> ?o FILTER (?o = 7) }",
    "join of two windows, COUNT": "SELECT (COUNT(*) AS ?n) "
    + _TWO
    + "{ WINDOW <urn:v> { ?s <urn:p> ?o } WINDOW <urn:w> { ?s <urn:q> ?x } }",
    "join with the stored graph, which changes; COUNT by 100 groups": "SELECT ?k (COUNT(*) AS ?n) "
    + _STORED
    + "{ ?s <urn:p> ?o . ?s <urn:r> ?k } GROUP BY ?k",
    "OPTIONAL with a second window, COUNT": "SELECT (COUNT(*) AS ?n) (COUNT(?x) AS ?m) "
    + _TWO
    + "{ WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s <urn:q> ?x } } }",
    "OPTIONAL of one row per edge of a second window, COUNT": "SELECT (COUNT(*) AS ?n) (COUNT(?q) AS ?m) "
    + _TWO
    + "{ WINDOW <urn:v> { ?s <urn:p> ?o } OPTIONAL { WINDOW <urn:w> { ?s ?q ?o } } }",
    "UNION of two windows, DISTINCT (1,000 rows)": "SELECT DISTINCT ?o "
    + _TWO
    + "{ { WINDOW <urn:v> { ?s <urn:p> ?o } } UNION { WINDOW <urn:w> { ?s <urn:q> ?o } } }",
    "ISTREAM (1,000 new rows a step)": "ISTREAM SELECT ?s ?o " + _ONE + "{ ?s <urn:p> ?o }",
    "added and removed rows of a scan (1,000 of each a step)": "CHANGES SELECT ?s ?o " + _ONE + "{ ?s <urn:p> ?o }",
    "added and removed rows of COUNT by 50,000 groups": "CHANGES SELECT ?s (COUNT(*) AS ?n) "
    + _ONE
    + "{ ?s <urn:p> ?o } GROUP BY ?s",
    "added and removed rows of DISTINCT (50,000 rows)": "CHANGES SELECT DISTINCT ?s " + _ONE + "{ ?s <urn:p> ?o }",
    "added and removed triples of a CONSTRUCT": "CHANGES CONSTRUCT { ?s <urn:is> ?o } " + _ONE + "{ ?s <urn:p> ?o }",
    "NOT EXISTS, COUNT": "SELECT (COUNT(*) AS ?n) "
    + _TWO
    + "{ WINDOW <urn:v> { ?s <urn:p> ?o } FILTER NOT EXISTS { WINDOW <urn:w> { ?s <urn:q> ?x } } }",
    "MINUS, COUNT": "SELECT (COUNT(*) AS ?n) "
    + _TWO
    + "{ WINDOW <urn:v> { ?s <urn:p> ?o } MINUS { WINDOW <urn:w> { ?s <urn:q> ?x } } }",
}


def run(*, tiny: bool = False) -> Iterator[Finding]:
    """Yield the growth of each query, updated and evaluated anew."""
    lengths = (2, 5) if tiny else LENGTHS_S
    for name, text in QUERIES.items():
        figures = {length: _measure(text, length) for length in lengths}
        windows = ", ".join(f"{length:,} s" for length in lengths)
        for kind in ("updated", "fresh"):
            core = [figures[length].core[kind] for length in lengths]
            step = [figures[length].step[kind] for length in lengths]
            costs = [" to ".join(f"{us:,.0f}" for us in list_) for list_ in (core, step)]
            what = f"{name}, {kind}: windows of {windows}; {costs[0]} µs in the core, {costs[1]} µs the whole step"
            growth = core[-1] / core[0]
            changed = [figures[length].changed_rows for length in lengths]
            if kind == "updated" and changed[-1] > 1.1 * changed[0] > 0:
                rows = " to ".join(f"{count:,}" for count in changed)
                what += f"; {growth:.3g} times for {rows} changed rows. Per changed row"
                growth *= changed[0] / changed[-1]
            # An answer of all rows in order is copied as a whole.
            target = None if kind == "fresh" or name == "ORDER BY, all rows" else 2.0 if "ORDER BY" in name else 1.3
            yield Row(what, growth, "times", COMMAND, target=target, clock="cpu")


@dataclass(slots=True)
class _Figures:
    """Medians in µs, by kind: of an execution in the core, and of a step. `changed_rows`: of the last updated step."""

    core: dict[str, float] = field(default_factory=dict)
    step: dict[str, float] = field(default_factory=dict)
    changed_rows: int = 0


def _measure(text: str, length: int) -> _Figures:
    """Return the figures of a query with updates and without."""
    text = text.replace("%d", str(length))
    limits = penstock.Limits(evaluation_timeout_s=60.0)  # a complete ORDER BY of a million rows takes seconds
    with penstock.Engine(limits=limits) as engine:
        for stream in (S, T):
            engine.declare_stream(stream, timing="all", batch_ms=1000)
        engine.declare_stream(U, timing=[], batch_ms=1000)
        for first in range(0, 50 * RATE, 10 * RATE):
            kinds = " ".join(f"<urn:v{i}> <urn:r> <urn:k{i % 100}> ." for i in range(first, first + 10 * RATE))
            engine.update(f"INSERT DATA {{ {kinds} }}")
        changes = text.startswith("CHANGES ")
        kind, _, body = text.partition(" ") if text.startswith("ISTREAM") else ("QUERY", "", text)
        body = body.removeprefix("CHANGES ")
        query = engine.register(f"REGISTER {kind} q AS {body}", changes=changes)
        figures = _Figures()
        second, answers = 0, list[Any]()

        def step() -> float:
            nonlocal second, answers
            second += 1
            _push(engine, second)
            began = time.thread_time_ns()
            engine.advance(None, second * 1000)
            answers = [e.raw_changes if changes else e.answer for e in query.poll()]
            return (time.thread_time_ns() - began) / 1000

        for kind, start in (("updated", None), ("fresh", _NEVER)):
            usual = native.maintain_from(start) if start is not None else None
            with core_times() as seen:
                steps = [step() for _ in range((length + 3 if kind == "updated" else 0) + STEPS)]
            plan = query._member.group.plan
            assert plan is not None
            core = seen[id(plan.native)].busy(clock_cost_us(engine._runtime.core))
            figures.core[kind], figures.step[kind] = statistics.median(core[-STEPS:]), statistics.median(steps[-STEPS:])
            if usual is not None:
                native.maintain_from(usual)
                continue
            usual = native.maintain_from(0)  # also if the operator did not use the changes, because its input is small
            step()
            step()
            native.maintain_from(usual)
            assert query._member.cohort is not None
            assert query._member.cohort.last_run is not None
            profiles = query._member.cohort.last_run.profiles
            figures.changed_rows = max(
                (changed for profile in profiles for _, _, changed, _ in profile.maintained()), default=0
            )
        check(len(answers), 1, "evaluations of the last step")
        return figures


def _push(engine: penstock.Engine, second: int) -> None:
    """Push the tuples of a second: subjects and values recur in an order that no window covers evenly."""
    for stream, predicate in ((S, "p"), (T, "q")):
        lines = []
        for i in range(RATE if stream == S else RATE // 10):
            number = second * RATE + i
            subject = number * 7919 % (50 * RATE)
            lines.append(
                f'<urn:v{subject}> <urn:{predicate}> "{(number * 31 + number // (50 * RATE)) % 1_000}"^^<{_INTEGER}> .'
            )
        engine.push(stream, "\n".join(lines), timestamp=second * 1000 - 1)
    changes = [f"<urn:v{second * 17 % (50 * RATE) + i}> <urn:r> <urn:k{second % 100}> ." for i in range(10)]
    engine.push(U, "\n".join(changes), timestamp=second * 1000 - 1)


_INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
