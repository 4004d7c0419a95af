"""The Avro schema of a query's result records.

The schema depends only on the text of the query. The variables of a SELECT become nullable fields. The type of such a
field is a primitive type if the text determines the datatype of the variable, and string otherwise. The names of the
other fields begin with an underscore.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import DataError
from penstock.query.algebra.tree import (
    Call,
    Distinct,
    Exists,
    Extend,
    Filter,
    Group,
    OrderBy,
    Project,
    Reduced,
    Slice,
    Variable,
)
from penstock.query.ir import Form

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.query.algebra.tree import Expr, Node
    from penstock.query.ir import ContinuousQuery

QUERY, MEMBER, TIME, SNAPSHOT, ERROR, ROWS, ROW = "_query", "_member", "_time", "_snapshot", "_error", "_rows", "_row"
"""The names of the fields that are not variables, in the order of the schema."""
_RESERVED: Final = frozenset({QUERY, MEMBER, TIME, SNAPSHOT, ERROR, ROWS, ROW})
ANSWERS: Final[Mapping[Form, tuple[str, str]]] = {
    Form.ASK: ("boolean", "boolean"),
    Form.CONSTRUCT: ("graph", "string"),
    Form.DESCRIBE: ("graph", "string"),
}
"""The name and the type of the field that contains the answer, by query form. SELECT has no such field."""
RECORD: Final = "penstock.Answer"
"""The full name of the schema of a query whose registration names a results topic."""
SHARED_NAMESPACE: Final = "penstock.results"
"""The namespace of the schemas of queries without a results topic of their own. Such a schema has the name of its
query.
"""
_NAME: Final = re.compile("[A-Za-z_][A-Za-z0-9_]*")
_NOT_IN_NAMES: Final = re.compile("[^A-Za-z0-9_]")
_INTEGERS = """
    strlen year month day hours minutes
    cast:long cast:int cast:short cast:byte cast:unsignedInt cast:unsignedShort cast:unsignedByte
"""
_TRUTHS = """
    = != < <= > >= and or not in notin bound sameterm isiri isblank isliteral isnumeric
    langmatches contains strstarts strends regex cast:boolean
"""
_TYPES: Final[Mapping[str, str]] = {
    "cast:double": "double",
    **dict.fromkeys(_INTEGERS.split(), "long"),
    **dict.fromkeys(_TRUTHS.split(), "boolean"),
}
"""The type of a field that contains the result of a function call, by function. A function that returns integers of any
size gives a string.
"""


@dataclass(frozen=True, slots=True)
class RowSchema:
    """The schema of a query's records. `fields`: the variables of a SELECT with their types. For another form of query,
    one field that has the answer. `of_set`: whether the records have the key of a member.
    """

    form: Form
    fields: tuple[tuple[str, str], ...]
    of_set: bool = False

    @property
    def row_types(self) -> str | None:
        """The types of a SELECT's variables as a text. Each type is the first character of the type's name. None for
        other forms.
        """
        return "".join(kind[0] for _, kind in self.fields) if self.form is Form.SELECT else None

    def text(self, name: str = RECORD) -> str:
        """Return the schema as JSON text. `name`: the full name of the schema."""
        fields: list[dict[str, Any]] = [{"name": QUERY, "type": "string"}]
        if self.of_set:
            fields.append({"name": MEMBER, "type": "string"})
        fields.append({"name": TIME, "type": {"type": "long", "logicalType": "timestamp-millis"}})
        fields += [{"name": SNAPSHOT, "type": "long"}, _nullable(ERROR, "string")]
        if self.form is Form.SELECT:
            fields += [{"name": ROWS, "type": "long"}, {"name": ROW, "type": "long"}]
        fields += [_nullable(*field) for field in self.fields]
        namespace, _, last = name.rpartition(".")
        return json.dumps({"type": "record", "name": last, "namespace": namespace, "fields": fields})


def _nullable(name: str, kind: str) -> dict[str, Any]:
    return {"name": name, "type": ["null", kind], "default": None}


def row_schema(query: ContinuousQuery) -> RowSchema:
    """Return the schema of a query's records. DataError if a variable cannot be the name of a field."""
    of_set = bool(query.parameters)
    if query.form is not Form.SELECT:
        return RowSchema(query.form, (ANSWERS[query.form],), of_set)
    names = [variable.name for variable in query.variables]
    for name in names:
        if name in _RESERVED or not _NAME.fullmatch(name):
            raise DataError(f"?{name} cannot be the name of a field in Avro: rename it, as in (?{name} AS ?other)")
    return RowSchema(query.form, tuple((name, _type_of(query.algebra, name)) for name in names), of_set)


def record_name(query: str) -> str:
    """Return the full name of the schema of a query without a results topic of its own."""
    name = _NOT_IN_NAMES.sub("_", query)
    return f"{SHARED_NAMESPACE}.{name if _NAME.fullmatch(name) else '_' + name}"


def _type_of(node: Node, variable: str) -> str:
    """Return the type of a variable's field. If an expression outside of all patterns binds the variable, the field has
    the type of the expression. Otherwise, the type is string.
    """
    while True:
        match node:
            case Extend(inner, Variable(name), expr):
                if name == variable:
                    if not isinstance(expr, Variable):
                        return _type_of_expression(expr)
                    variable = expr.name
                node = inner
            case Group(_, _, aggregates):
                counted = any(name.name == variable and call.name == "count" for name, call in aggregates)
                return "long" if counted else "string"
            case Project(inner, variables):
                if all(name.name != variable for name in variables):
                    return "string"  # a subquery hides the variable
                node = inner
            case Distinct(inner) | Reduced(inner) | Slice(inner) | OrderBy(inner) | Filter(inner):
                node = inner
            case _:
                return "string"


def _type_of_expression(expr: Expr) -> str:
    if isinstance(expr, Exists):
        return "boolean"
    if not isinstance(expr, Call):
        return "string"
    return _TYPES.get(expr.name, "string")
