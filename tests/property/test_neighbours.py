"""What a row gives does not depend on its neighbours: VALUES rows answered together are the rows answered one by one.

Patterns to the right of VALUES (OPTIONAL, MINUS, FILTER, BIND, UNION, GRAPH) work on each row by itself, so that the
answer over a bag of rows is the union of the answers over each. Nothing else is needed to see an EXISTS, or a join with
cells that may be unbound, that mixes rows up.
"""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pyoxigraph as ox
import pytest

import penstock
from property.bodies import INTEGERS, LINKS, NODES, VALUE, Places, Scope, X
from property.scoping import NAME, NAMES, SIZE, SIZES, ScopingMaker
from support import patterns as P
from support.answers import from_api
from support.printing import Printer

if TYPE_CHECKING:
    from collections.abc import Iterator

GRAPHS = (X + "graph/a", X + "graph/b")
COLUMNS = ("r", "a", "b", "v")


def data(rng: random.Random) -> str:
    """A few quads over the small vocabulary, in the default graph and two named ones."""
    lines = []
    for _ in range(rng.randint(4, 16)):
        subject, kind = rng.choice(NODES), rng.random()
        if kind < 0.6:
            triple = f"{subject} {rng.choice(LINKS)} {rng.choice(NODES)}"
        elif kind < 0.8:
            triple = f"{subject} {VALUE} {rng.choice(INTEGERS)}"
        else:
            triple = f"{subject} {SIZE} {rng.choice(SIZES)}" if kind < 0.9 else f"{subject} {NAME} {rng.choice(NAMES)}"
        graph = rng.choice(["", "", f"<{GRAPHS[0]}>", f"<{GRAPHS[1]}>"])
        lines.append(f"{triple} {graph} .")
    return "\n".join(lines)


def table(rng: random.Random) -> list[tuple[ox.NamedNode | ox.Literal | None, ...]]:
    """Rows of VALUES; `r` numbers them."""

    def maybe(choices: list[ox.NamedNode] | list[ox.Literal]) -> ox.NamedNode | ox.Literal | None:
        return None if rng.random() < 0.4 else rng.choice(choices)

    nodes = [*NODES, ox.NamedNode(X + "nowhere")]
    return [(ox.Literal(str(1000 + k)), maybe(nodes), maybe(nodes), maybe(INTEGERS)) for k in range(rng.randint(2, 6))]


def elements(rng: random.Random, maker: ScopingMaker) -> Iterator[P.Element]:
    """What is joined with the rows, one after another; an EXISTS at least."""
    scope = Scope({"r": "text", "a": "node", "b": "node", "v": "number"})
    for _ in range(rng.choice([0, 0, 1, 2])):
        kinds = [maker.bare_optional, maker.inner_minus, maker.triples, maker.loose_union, maker.placed]
        yield rng.choice(kinds)(scope, 1)
    test = P.Exists(maker.exists_group(scope), rng.random() < 0.5)
    if rng.random() < 0.3:
        yield P.Bind(test, P.Var("has"))
    else:
        yield P.Filter(test)


def rows_of(engine: penstock.Engine, rows: list[tuple[ox.NamedNode | ox.Literal | None, ...]], rest: str) -> Counter:  # type: ignore[type-arg]
    values = Printer().element(P.Values(tuple(map(P.Var, COLUMNS)), tuple(rows)))
    answer = from_api(engine.query(f"SELECT * {{ {values} {rest} }}", timeout_s=30))
    return Counter(frozenset(zip(answer.variables, row, strict=True)) for row in answer.rows)  # type: ignore[union-attr]


def check(seed: int) -> None:
    rng = random.Random(seed)
    maker = ScopingMaker(rng, Places(GRAPHS, (), variable=True))
    quads, rows = data(rng), table(rng)
    rest = " ".join(map(Printer().element, elements(rng, maker)))
    with penstock.Engine(shards=rng.choice([1, 3])) as engine:
        engine.load(quads.encode(), format="nquads")
        together = rows_of(engine, rows, rest)
        apart = sum((rows_of(engine, [row], rest) for row in rows), Counter())
        assert together == apart, f"case {seed}:\n{rows}\n{rest}\n{quads}"


PORTION = 50


@pytest.mark.parametrize("first", range(0, 300, PORTION))
def test_rows_together_give_what_each_gives_alone(first: int) -> None:
    for seed in range(first, first + PORTION):
        check(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(10_000, 15_000, PORTION))
def test_rows_together_give_what_each_gives_alone_in_five_thousand_more(first: int) -> None:
    for seed in range(first, first + PORTION):
        check(seed)
