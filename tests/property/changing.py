"""Cases with many updates, most of which remove: DELETE and INSERT with data and patterns, CLEAR, MOVE, COPY, sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyoxigraph as ox

from property.bodies import INTEGERS, LINKS, NODES, VALUE, BodyMaker, Places, Scope
from property.cases import GRAPHS, CaseMaker
from property.script import Case, Load, Update
from support import patterns as P
from support import updates
from support.terms import parse_triples

if TYPE_CHECKING:
    from support.terms import Triple


class ChangingMaker(CaseMaker):
    """Makes the case of one number. `known`: lines of data so far, which updates remove and add again."""

    known: list[str]

    def triples(self, count: int, *, stored: bool = False) -> str:
        text = super().triples(count, stored=stored)
        plain = [line for line in text.split("\n") if "_:" not in line]
        self.known = [*getattr(self, "known", []), *plain][-400:]
        return text

    def step(self) -> None:
        if self.rng.random() < 0.35:
            self.operations.append(self.update())
            if self.rng.random() < 0.25:
                self.operations.append(self.ask())
        else:
            super().step()

    def update(self) -> Update:
        made = tuple(self.operation() for _ in range(self.rng.choice([1, 1, 1, 2, 3])))
        return Update(updates.text(made), made)

    def operation(self) -> updates.Operation:
        rng, kind = self.rng, self.rng.random()
        graph = rng.choice([None, None, *GRAPHS])
        if kind < 0.3:
            return updates.Data(False, self.lines(rng.randint(1, 6)), graph)
        if kind < 0.5:
            return updates.Data(True, self.lines(rng.randint(1, 4)), graph)
        if kind < 0.85:
            return self.modify()
        if kind < 0.93:
            target = rng.choice([*GRAPHS, *GRAPHS, "DEFAULT", "NAMED", "ALL"])
            return updates.Clear(rng.choice(["CLEAR", "DROP"]), target)
        return updates.Transfer(rng.choice(["ADD", "MOVE", "COPY"]), graph, rng.choice([None, *GRAPHS]))

    def lines(self, count: int) -> str:
        """Make lines, most of which the data have or had."""
        rng = self.rng
        chosen = [rng.choice(self.known) for _ in range(count)] if self.known else []
        if rng.random() < 0.3 or not chosen:
            chosen.append(f"{rng.choice(NODES)} {VALUE} {rng.choice(INTEGERS)} .")
        return "\n".join(dict.fromkeys(chosen))

    # ---- patterns
    def modify(self) -> updates.Modify:
        rng = self.rng
        maker = BodyMaker(rng, Places(GRAPHS, (), variable=True), blank_nodes=self.blank_nodes, **self._style())
        scope = Scope()
        if rng.random() < 0.25:
            pattern = tuple(self.plain_triple(maker, scope) for _ in range(rng.choice([1, 1, 2])))
            graph = rng.choice([None, None, *GRAPHS])
            triples: P.Element = P.Triples(pattern)
            group = P.Group((triples if graph is None else P.Graph(ox.NamedNode(graph), P.Group((triples,))),))
            variables = tuple(sorted({t.name for p in pattern for t in p if isinstance(t, P.Var)}))
            return updates.Modify(tuple((graph, p) for p in pattern), (), group, variables, short=True)
        if rng.random() < 0.2:
            select = maker.select()
            group, scope = P.Group((P.SubSelect(select),)), Scope(dict.fromkeys(select.variables, "any"))
        else:
            group = maker.binding(scope, depth=1)
        delete = tuple(self.template_quad(scope) for _ in range(rng.choice([0, 1, 1, 2])))
        insert = tuple(self.template_quad(scope, new=True) for _ in range(rng.choice([0, 0, 1, 2])))
        given = rng.choice([None, None, None, *GRAPHS])
        using = tuple(rng.sample(GRAPHS, rng.randint(1, 2))) if rng.random() < 0.1 else ()
        return updates.Modify(delete, insert, group, tuple(sorted(scope.kinds)), given, using)

    def plain_triple(self, maker: BodyMaker, scope: Scope) -> tuple[P.Node, P.Node, P.Node]:
        while True:
            s, p, o = maker.triple(scope)
            if isinstance(p, P.Var | ox.NamedNode):
                return s, p, o

    def template_quad(self, scope: Scope, *, new: bool = False) -> updates.Quad:
        rng = self.rng
        names = [P.Var(name) for name in sorted(scope.kinds)]
        nodes = [P.Var(name) for name in scope.of("node")] or names
        graph = rng.choice([None, None, None, None, *GRAPHS, P.Var("g") if "g" in scope.kinds else None])
        subject = rng.choice([*nodes, *nodes, rng.choice(NODES)])
        if new and self.blank_nodes and rng.random() < 0.1:
            subject = ox.BlankNode("new")
        predicate = rng.choice([*LINKS, VALUE, *([P.Var("p")] * 2 if "p" in scope.kinds else [])])
        return graph, (subject, predicate, rng.choice([*names, *names, rng.choice([*NODES, *INTEGERS])]))


def make_changing(seed: int) -> Case:
    """Return another case of that number, with many updates."""
    return ChangingMaker(seed).make()


def compared(seed: int) -> int:
    """Compare the model of a case's updates with pyoxigraph; returns the number of updates."""
    count = 0
    state: dict[str | None, set[Triple]] = {}
    for operation in make_changing(seed).operations:
        if isinstance(operation, Load):
            state.setdefault(operation.graph, set()).update(parse_triples(operation.data))
        if not isinstance(operation, Update) or operation.operations is None:
            continue
        before = {graph: set(triples) for graph, triples in state.items()}
        for adds, graph, triple in updates.changes(operation.operations, before):
            triples = state.setdefault(graph, set())
            triples.add(triple) if adds else triples.discard(triple)
        if "_:new" in operation.text or " SILENT " in operation.text:
            continue  # pyoxigraph names its own blank nodes, and empties the target of what does not exist
        expected = {(graph, *triple) for graph, triples in state.items() for triple in triples}
        got = _by_pyoxigraph(before, operation.text)
        assert got == expected, (
            f"case {seed}: {operation.text}\nonly model {expected - got}, only other {got - expected}"
        )
        count += 1
    return count


def _by_pyoxigraph(state: dict[str | None, set[Triple]], text: str) -> set[tuple[object, ...]]:
    store = ox.Store()
    for graph, triples in state.items():
        name = ox.DefaultGraph() if graph is None else ox.NamedNode(graph)
        store.extend(ox.Quad(*triple, name) for triple in triples)
    for verb in ("CLEAR", "DROP"):  # of a graph that does not exist: an error there
        text = text.replace(f"{verb} GRAPH", f"{verb} SILENT GRAPH")
    store.update(text)
    return {
        (None if isinstance(q.graph_name, ox.DefaultGraph) else q.graph_name.value, q.subject, q.predicate, q.object)
        for q in store
    }
