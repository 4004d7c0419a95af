"""A summary line for the W3C suites: how many of each kind pass."""

from __future__ import annotations

import collections
from typing import Any

KINDS = {
    "test_evaluation_gives_the_expected_result": "evaluations",
    "test_good_text_is_accepted": "positive syntax",
    "test_bad_text_is_refused": "negative syntax",
}


def pytest_terminal_summary(terminalreporter: Any) -> None:
    outcomes: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for outcome in ("passed", "failed", "error", "xfailed", "xpassed"):
        for report in terminalreporter.stats.get(outcome, []):
            name = report.nodeid.split("::")[-1].split("[")[0]
            if "test_w3c.py" in report.nodeid and name in KINDS:
                outcomes[KINDS[name]][outcome] += 1
    if outcomes:
        parts = [f"{kind} {c['passed']} of {sum(c.values())}" for kind, c in outcomes.items()]
        terminalreporter.write_line("W3C suites: " + " · ".join(parts))
