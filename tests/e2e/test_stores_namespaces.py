"""Random cases over three stores, each and the engine in a network namespace of its own: TCP alone joins them."""

from __future__ import annotations

import pytest

from support.namespaces import network, start

_PORTION_S = 500


def _holds(first: int, count: int) -> None:
    with network(3) as made:
        places = [f"--store-at={node}={host}" for node, host in zip(made.nodes, made.hosts, strict=True)]
        numbers = f"{first}-{first + count - 1}"
        engine = start(made.engine, "-m", "property.case", "--quiet", "--transport=tcp", *places, numbers)
        try:
            said, _ = engine.communicate(timeout=_PORTION_S)
        finally:
            engine.kill()
            engine.wait()
    assert f"0 of {count} cases differ" in said, said
    assert engine.returncode == 0


def test_cases_over_three_stores_in_namespaces_agree_with_the_model() -> None:
    _holds(20_060, 40)


@pytest.mark.long
@pytest.mark.parametrize("first", range(26_000, 28_000, 50))
def test_two_thousand_more_cases_in_namespaces_agree_with_the_model(first: int) -> None:
    _holds(first, 50)
