"""The systems that contract tests run against, and a summary line for the W3C suites."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any

import pytest

from support.systems import EngineSystem, OracleSystem

if TYPE_CHECKING:
    from collections.abc import Iterator

SUITES = {"W3C suites": "test_w3c.py", "W3C suite of updates": "test_w3c_update.py"}
KINDS = {
    "test_evaluation_gives_the_expected_result": "evaluations",
    "test_good_text_is_accepted": "positive syntax",
    "test_bad_text_is_refused": "negative syntax",
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    outcomes: dict[str, dict[str, collections.Counter[str]]] = {}
    for outcome in ("passed", "failed", "error", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            name = report.nodeid.split("::")[-1].split("[")[0]
            suite = next((title for title, file in SUITES.items() if f"/{file}::" in report.nodeid), None)
            if suite is not None and name in KINDS:
                counts = outcomes.setdefault(suite, collections.defaultdict(collections.Counter))
                counts[KINDS[name]][outcome] += 1
    for suite, kinds in outcomes.items():
        parts = [f"{kind} {c['passed']} of {sum(c.values())}" for kind, c in kinds.items()]
        terminalreporter.write_line(f"{suite}: " + " · ".join(parts))


@pytest.fixture(params=["oracle", "engine", "engine-3-shards"])
def system(request: pytest.FixtureRequest) -> Iterator[Any]:
    """Give the model of docs/semantics.md, then the engine with one shard and with three: one suite holds for all."""
    if request.param == "oracle":
        made: Any = OracleSystem()
    else:
        made = EngineSystem(shards=3 if "3" in request.param else 1)
    yield made
    made.close()
