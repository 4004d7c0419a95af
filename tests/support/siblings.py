"""Siblings of a text: texts that differ from it only in parameters, so that an engine prepares it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.oneshot.normalization import normalize
from penstock.errors import QueryError
from penstock.query.parser import parse
from penstock.query.prepared import BoundModify, prepare

if TYPE_CHECKING:
    from penstock.engine import Engine
    from penstock.engine.oneshot.texts import Texts


def sibling(text: str, number: int) -> str | None:
    """Return a text with other constants in place of the parameters. None if the text cannot be prepared."""
    normalized = normalize(text)
    if normalized is None:
        return None
    try:
        prepared = prepare(normalized, parse(text))
    except QueryError:
        return None
    if prepared is None:
        return None
    first, *pieces = normalized.pattern.split("\x00")
    found = [first]
    for i, (constant, piece) in enumerate(zip(normalized.constants, pieces, strict=True)):
        other = constant if i in prepared.fixed else _other(constant, piece[0], number)
        found += [other, piece[1:]]
    return "".join(found)


def prime(texts: Texts, text: str) -> bool:
    """Make the engine of `texts` prepare a text, by its siblings. Returns whether it can be prepared."""
    for number in (1, 2, 3):
        other = sibling(text, number)
        if other is None:
            return False
        texts.bound_query(other, None)
    return True


def compile_update(engine: Engine, text: str) -> bool:
    """Compile the update of a prepared text, without its execution. Returns whether it can be compiled."""
    bound = engine._texts.bound_update(text, None)
    if bound is None or (parts := bound.prepared.parts()) is None:
        return False
    (operation,) = bound.operations
    assert isinstance(operation, BoundModify)
    core = engine._runtime.core
    lease, view = core.dictionary.lease(), core.store.view()
    try:
        engine._one_shot._generic.find(core, operation.query, view)
    except QueryError:
        return False
    del lease
    engine._compiled.add(bound)
    return engine._one_shot._generic.known(parts.query) is not None


def _other(constant: str, kind: str, number: int) -> str:
    match kind:
        case "i":
            return f"<urn:sibling:{number}>"
        case "s":
            return f"{constant[:-1]} {number}{constant[-1]}"
        case "d":
            return f"{constant}{number}"
        case _:
            return f"{number}{constant}"
