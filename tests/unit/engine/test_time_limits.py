"""What one expression may take of an evaluation's time."""

from __future__ import annotations

import time

import pytest

import penstock

ROWS, TIMEOUT_S = 200, 0.3


@pytest.mark.parametrize(
    "expression",
    [
        r"REGEX(?o, '^(a|a)*\\p{Lu}?$')",
        "REPLACE(?o, '^(a|a)+[x-z]', '')",
        r"REGEX(?o, CONCAT('^(a|a)*[x-z]|\\p{Lu}|', STR(?s)))",  # another pattern in each row
    ],
)
def test_hostile_patterns_do_not_outlast_the_time_limit(expression: str) -> None:
    """Each search alone takes less than its own limit: rows of one batch must not add up to minutes."""
    text = "".join(f'<urn:s{k}> <urn:p> "{"a" * 21}{k}" .\n' for k in range(ROWS))
    with penstock.Engine() as engine:
        engine.load(text.encode(), format="nt")
        began = time.monotonic()
        with pytest.raises(penstock.LimitError):
            engine.query(f"SELECT ({expression} AS ?x) {{ ?s <urn:p> ?o }}", timeout_s=TIMEOUT_S)
        assert time.monotonic() - began < 10 * TIMEOUT_S


def test_patterns_that_the_native_module_matches_take_linear_time() -> None:
    with penstock.Engine() as engine:
        engine.load(f'<urn:s> <urn:p> "{"a" * 10_000}!" .'.encode(), format="nt")
        text = "SELECT ?s { ?s <urn:p> ?o FILTER REGEX(?o, '^(a|a)*(a*)*$') }"
        assert len(list(engine.query(text, timeout_s=TIMEOUT_S))) == 0
