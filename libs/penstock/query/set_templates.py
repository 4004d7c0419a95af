"""The template of a query set: its text with parameters in place of constants (docs/adr/0085-query-sets.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING

from penstock.query.algebra.tree import Bgp, Parameter
from penstock.query.algebra.walk import nodes
from penstock.query.resolve import error_at
from penstock.query.templates import Template, parametrise

if TYPE_CHECKING:
    from penstock.query.ir import ContinuousQuery


class Use(Enum):
    """How the text of a query set uses a parameter. In a table of members, this use determines the meaning of a value
    without a type.
    """

    SUBJECT = "subject"  # also as a subject: its values are IRIs
    VERTEX = "vertex"  # also as an object, but not as a subject: text is an IRI
    VALUE = "value"  # in expressions only: text is a string


@dataclass(frozen=True, slots=True)
class SetTemplate:
    """The template of a query set. `occurrences`: for each parameter of the template, the index of the declared
    parameter. `names`, `uses`: the name and the use of each declared parameter.
    """

    template: Template
    names: tuple[str, ...]
    occurrences: tuple[int, ...]
    uses: tuple[Use, ...]


def set_template(query: ContinuousQuery, name: str) -> SetTemplate:
    """Return the template of the query set `name`. The query must be resolved. QueryError if the query declares no
    parameters, does not use a declared parameter, or publishes a stream.
    """
    if not query.parameters:
        raise error_at(query, query.name_at, "a query set needs parameters: REGISTER QUERY name (?parameter …) AS …")
    if query.publishes:
        raise error_at(query, query.name_at, "a query set cannot publish a stream: give it a name that is no IRI")
    template, constants = parametrise(query, declared_only=True)
    names = tuple(variable.name for variable in query.parameters)
    places = {name: i for i, name in enumerate(names)}
    occurrences = tuple(places[each.lexical] for each in constants if isinstance(each, Parameter))
    for i, variable in enumerate(query.parameters):
        if i not in occurrences:
            raise error_at(query, variable.at, f"the text does not use the parameter ?{variable.name}")
    bare = replace(template.query, name=name)  # the group of a set has no other members
    return SetTemplate(Template(bare, template.parameters), names, occurrences, _uses(query, names))


def _uses(query: ContinuousQuery, names: tuple[str, ...]) -> tuple[Use, ...]:
    found = dict.fromkeys(names, Use.VALUE)
    for node in nodes(query.algebra):
        for triple in node.patterns if isinstance(node, Bgp) else ():
            if isinstance(triple.object, Parameter) and found[triple.object.lexical] is Use.VALUE:
                found[triple.object.lexical] = Use.VERTEX
            if isinstance(triple.subject, Parameter):
                found[triple.subject.lexical] = Use.SUBJECT
    return tuple(found[name] for name in names)
