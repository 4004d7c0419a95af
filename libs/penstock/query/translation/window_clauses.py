"""Translation of dataset and registration clauses to the windows of the IR, with the checks that need no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lark import Token

from penstock.query.ir import CountRange, Dataset, TimeRange, WindowClause
from penstock.query.syntax.ast_nodes import DurationSyntax, LiteralSyntax, position
from penstock.query.syntax.lexis import string_value
from penstock.query.text_faults import Fault
from penstock.query.translation.durations import duration_ms, instant_ms

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.query.algebra.tree import Iri
    from penstock.query.syntax.ast_nodes import DatasetClause, StreamPattern, WindowSyntax
    from penstock.query.translation.context import Context

GENERATED = "urn:x-penstock:window/"
"""The beginning of the names that are generated for windows without a name in the text."""

MAX_COUNT = 1 << 31
"""Maximum number of tuples in a count window."""


def milliseconds(syntax: DurationSyntax) -> int:
    """Return a duration in ms. Fault if the duration is zero, negative, too long or malformed."""
    try:
        return duration_ms(syntax.text)
    except ValueError as error:
        raise Fault(str(error), syntax.at, syntax.text) from None


def starting_instant(syntax: Token | LiteralSyntax) -> int:
    """Return the instant of STARTING AT in ms since the epoch. The text has an integer in ms or an xsd:dateTime. Fault
    for all other values.
    """
    token = syntax.string if isinstance(syntax, LiteralSyntax) else syntax
    if not token.type.startswith("STRING"):
        if not token.type.startswith("INTEGER") or len(token) > 19 or abs(int(token)) > 1 << 62:
            raise Fault(f"{token} is not an instant in milliseconds", position(token), str(token))
        return int(token)
    try:
        return instant_ms(string_value(token))
    except ValueError as error:
        raise Fault(str(error), position(token), str(token)) from None


def read_dataset(clauses: Iterable[DatasetClause], context: Context) -> Dataset:
    """Return the stored graphs in dataset clauses, in order, and add the windows in the clauses to the context. Fault
    if a window is invalid.
    """
    default: list[Iri] = []
    named: list[Iri] = []
    for clause in clauses:
        source = context.names.iri(clause.source)
        if clause.window is None:
            (named if clause.named else default).append(source)
            continue
        name = source.value if clause.window_name is None else context.names.iri(clause.window_name).value
        extent = _extent(source.value, clause.window, context)
        own_name = clause.window_name is not None
        _check_count(context, position(clause.source))
        if clause.removed and isinstance(extent, CountRange):
            raise Fault("REMOVED FROM has time windows only: write [RANGE …]", clause.window.at, "[")
        at = position(clause.source)
        window = WindowClause(name, source.value, extent, not clause.named, own_name, clause.removed, at)
        _check_name(window, context.windows, position(clause.window_name or clause.source))
        context.windows[name] = window
    return Dataset(tuple(default), tuple(named))


def block_window(stream: str, block: StreamPattern, context: Context) -> str:
    """Return the name of the window in `STREAM <s> [ … ] {…}` of CQELS-QL, and add the window to the context.

    Equal windows share a name. The name of the first window over a stream is the stream's IRI.
    """
    extent = _extent(stream, block.window, context)
    for clause in context.windows.values():
        if clause.named_window and (clause.stream, clause.range) == (stream, extent):
            return clause.name
    name = stream if stream not in context.windows else f"{GENERATED}{len(context.windows)}"
    at = position(block.stream)
    _check_count(context, at)
    context.windows[name] = WindowClause(name, stream, extent, in_default=False, named_window=True, at=at)
    if block.window.kind == "RANGE" and block.window.step is None and not block.window.tumbling:
        context.warnings.append(
            f"the window on <{stream}> has no SLIDE: it tumbles, where CQELS would report at every change"
        )
    return name


def _extent(stream: str, window: WindowSyntax, context: Context) -> TimeRange | CountRange:
    if window.kind in ("TRIPLES", "ELEMENTS"):
        return _count_range(window)
    extent = _time_range(window, context.computed_every_ms)
    if extent.range_ms is not None and extent.step_ms > extent.range_ms:
        context.warnings.append(
            f"the step of the window on <{stream}> ({extent.step_ms} ms) is longer than its range"
            f" ({extent.range_ms} ms): tuples between two windows are never seen"
        )
    return extent


def _time_range(window: WindowSyntax, computed_ms: int | None) -> TimeRange:
    """Return the range and step of a time window. COMPUTED EVERY sets the step of every window, with or without a step
    in the text (docs/semantics.md §3).
    """
    if window.kind == "NOW":
        return TimeRange(0, 0, now=True)
    range_ms = milliseconds(window.size) if isinstance(window.size, DurationSyntax) else None
    own_ms = milliseconds(window.step) if isinstance(window.step, DurationSyntax) else range_ms
    if window.second_step is not None and own_ms is not None:
        own_ms = _report_step(window.second_step, own_ms)
    step_ms = own_ms if computed_ms is None else computed_ms
    if step_ms is None:
        raise Fault("[ALL] needs a step: write [ALL STEP 1s]", window.at, "[ALL]")
    return TimeRange(range_ms, step_ms)


def _report_step(step: DurationSyntax, slide_ms: int) -> int:
    """Return the step of a window with SLIDE and STEP: the window moves every SLIDE, and reports every STEP. If STEP is
    a multiple of SLIDE, each report has the contents that a window without SLIDE has.
    """
    step_ms = milliseconds(step)
    if step_ms % slide_ms:
        message = "STEP must be a multiple of SLIDE: the window reports only at instants at which it moves"
        raise Fault(message, step.at, step.text)
    return step_ms


def _count_range(window: WindowSyntax) -> CountRange:
    size = _count(window.size)
    return CountRange(size, size if window.step is None else _count(window.step))


def _count(token: object) -> int:
    assert isinstance(token, Token)  # by the grammar
    if len(token) > 12 or not 0 < int(token) <= MAX_COUNT:
        raise Fault(f"a count window holds 1 to {MAX_COUNT} tuples", position(token), str(token))
    return int(token)


def _check_count(context: Context, at: int) -> None:
    most = context.budget.limits.max_windows
    if len(context.windows) >= most:
        context.budget.exceeded("max_windows", f"the query has more than {most} windows", at)


def _check_name(clause: WindowClause, earlier: dict[str, WindowClause], at: int) -> None:
    other = earlier.get(clause.name)
    if other is None:
        return
    if clause.named_window or other.named_window:
        raise Fault(f"two windows have the name <{clause.name}>", at)
    form = "REMOVED FROM NAMED WINDOW" if clause.removed else "FROM NAMED WINDOW"
    message = f"the stream <{clause.name}> stands in two clauses: use {form} <w> ON <{clause.name}>"
    raise Fault(message, at)


def check_kinds(context: Context) -> None:
    """Raise Fault if a query has both count windows and time windows, or count windows and COMPUTED EVERY
    (docs/semantics.md §3).
    """
    windows = list(context.windows.values())
    kinds = {type(clause.range) for clause in windows}
    if len(kinds) > 1:
        guilty = next(clause for clause in windows if type(clause.range) is not type(windows[0].range))
        raise Fault("count windows and time windows cannot stand in one query", guilty.at)
    if CountRange in kinds and context.computed_every_ms is not None:
        raise Fault("COMPUTED EVERY is for time windows; count windows report by their own STEP", windows[0].at)
