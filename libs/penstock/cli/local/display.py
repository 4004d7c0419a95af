"""Display of answers in a terminal: tables, short IRIs, times of day."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import rdflib
from rich.table import Table

from penstock.engine import Solutions

if TYPE_CHECKING:
    from penstock.engine import Evaluation

_PREFIXES = {
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#": "rdf:",
    "http://www.w3.org/2000/01/rdf-schema#": "rdfs:",
    "http://www.w3.org/2001/XMLSchema#": "xsd:",
}


def clock(milliseconds: int) -> str:
    """Format an event time. In the years 2000 to 2099, the text is a date and time of day, otherwise milliseconds."""
    if not 946_684_800_000 <= milliseconds < 4_102_444_800_000:
        return f"{milliseconds} ms"
    moment = datetime.fromtimestamp(milliseconds / 1000, tz=UTC)
    text = f"{moment:%Y-%m-%d %H:%M:%S}"
    return text if moment.microsecond == 0 else f"{text}.{moment.microsecond // 1000:03d}"


def short(term: Any) -> str:
    """Return a short text of a term: a prefixed name, the last segment of an IRI, or a literal's text."""
    if isinstance(term, rdflib.URIRef):
        for namespace, prefix in _PREFIXES.items():
            if term.startswith(namespace):
                return prefix + term[len(namespace) :]
        tail = str(term).rstrip("/#")
        cut = max(tail.rfind("/"), tail.rfind("#"))
        return f"<…{tail[cut:]}>" if cut > 8 else f"<{term}>"
    if isinstance(term, rdflib.BNode):
        return f"_:{term}"
    return str(term)


def answer_table(evaluation: Evaluation, *, rows: int = 20) -> Table:
    """Return a table of an answer, with at most `rows` rows."""
    answer = evaluation.answer
    table = Table(expand=False, show_edge=False, pad_edge=False)
    if isinstance(answer, bool):
        table.add_column("answer")
        table.add_row("yes" if answer else "no")
        return table
    if isinstance(answer, Solutions):
        for name in answer.variables:
            table.add_column(f"?{name}", overflow="fold")
        for i, solution in enumerate(answer):
            if i == rows:
                table.caption = f"… and {len(answer) - rows} more"
                break
            table.add_row(*(short(solution[name]) if name in solution else "" for name in answer.variables))
        return table
    for name in ("subject", "predicate", "object"):
        table.add_column(name, overflow="fold")
    for i, triple in enumerate(sorted(answer)):
        if i == rows:
            table.caption = f"… and {len(answer) - rows} more"
            break
        table.add_row(*map(short, triple))
    return table


def size(evaluation: Evaluation) -> str:
    """Return the size of an answer as text."""
    answer = evaluation.answer
    if isinstance(answer, bool):
        return "yes" if answer else "no"
    unit = "row" if isinstance(answer, Solutions) else "triple"
    return f"{len(answer)} {unit}{'' if len(answer) == 1 else 's'}"
