"""Terms, expressions and paths in plan format, and as text for EXPLAIN."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.query.algebra.tree import (
    AggregateCall,
    Alternative,
    BlankNode,
    Call,
    Exists,
    Expr,
    Inverse,
    Iri,
    Link,
    Literal,
    NegatedSet,
    OneOrMore,
    Path,
    Sequence,
    Term,
    Variable,
    ZeroOrMore,
    ZeroOrOne,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.query.planning.plan_context import PlanContext
    from penstock.query.planning.relations import Spec

_SHOWN = 200  # maximum length of a displayed term, in characters


def term_spec(term: Term, context: PlanContext) -> Spec:
    """Return a term in plan format: the slot of a variable, or the id of a constant."""
    if isinstance(term, Variable):
        return {"var": context.slot(term.name)}
    if isinstance(term, BlankNode):
        raise TypeError("blank nodes stand only in templates")
    return {"id": context.catalogue.term_id(term)}


def expression_spec(expr: Expr, context: PlanContext, exists: Callable[[Exists], Spec]) -> Spec:
    """Return an expression in plan format. `exists` plans an EXISTS, and returns a reference to its sub-plan."""
    match expr:
        case Variable() | Iri() | Literal():
            return term_spec(expr, context)
        case Exists():
            return exists(expr)
        case Call():
            context.budget.spend()
            spec: Spec = {
                "call": expr.name,
                "args": [expression_spec(argument, context, exists) for argument in expr.args],
            }
            if expr.name in ("window_start", "window_end"):
                names = [clause.name for clause in context.query.windows]
                spec["window"] = names.index(expr.extra)
            elif expr.name == "iri" and expr.extra:
                spec["base"] = expr.extra
            return spec
        case _:
            raise TypeError("aggregates are lifted out of expressions before planning")


def path_spec(path: Path, context: PlanContext) -> Spec:
    """Return a property path in plan format."""

    def ids(iris: tuple[Iri, ...] | None) -> list[int] | None:
        return None if iris is None else [context.catalogue.term_id(iri) for iri in iris]

    match path:
        case Link():
            return {"link": context.catalogue.term_id(path.iri)}
        case Inverse():
            return {"inv": path_spec(path.path, context)}
        case Sequence():
            return {"seq": [path_spec(part, context) for part in path.parts]}
        case Alternative():
            return {"alt": [path_spec(part, context) for part in path.parts]}
        case ZeroOrMore():
            return {"star": path_spec(path.path, context)}
        case OneOrMore():
            return {"plus": path_spec(path.path, context)}
        case ZeroOrOne():
            return {"opt": path_spec(path.path, context)}
        case NegatedSet():
            return {"nps": ids(path.forward), "inv": ids(path.inverse)}


def render_term(term: Term) -> str:
    """Return a term as text for EXPLAIN."""
    match term:
        case Variable():
            return term.name if term.name[0] in "$_" else f"?{term.name}"
        case Iri():
            return f"<{_clipped(term.value)}>"
        case Literal():
            suffix = f"@{term.lang}" if term.lang else ""
            return f'"{_clipped(term.lexical)}"{suffix}'
        case BlankNode():
            return f"_:{term.label}"


def _clipped(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def render_expression(expr: Expr) -> str:
    """Return an expression as text for EXPLAIN."""
    if isinstance(expr, Exists):
        return "not exists {…}" if expr.negated else "exists {…}"
    if isinstance(expr, Call):
        return f"{expr.name}({', '.join(map(render_expression, expr.args))})"
    if isinstance(expr, AggregateCall):
        return f"{expr.name}(…)"
    return render_term(expr)
