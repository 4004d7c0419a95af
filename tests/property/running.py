"""Runs a case on the model and on the engine, operation by operation, and finds the first difference."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from property.script import Ask, Case, Declare, Load, Push, PushMany, Register, Restart, Stop
from support.answers import Rows, difference
from support.evaluator import TooLarge
from support.meaning import Tally
from support.split import SplitSystem
from support.systems import EngineSystem, OracleSystem, Reported

if TYPE_CHECKING:
    from property.script import Operation
    from support.engine_over_stores import EngineOverStores


@dataclass
class Difference:
    """Where a case first differs: after which operation, and how."""

    index: int
    operation: Operation
    what: str

    def __str__(self) -> str:
        return f"after operation {self.index}, {self.operation}:\n{self.what}"


def run(
    case: Case, tally: Tally | None = None, over: EngineOverStores | None = None, *, split: bool = False
) -> Difference | None:
    """Return the first difference between engine and model, or None. `over`: that engine, which is closed.

    `split`: over a partial dictionary, as an engine of a cluster does (support/split.py).
    """
    tally = tally if tally is not None else Tally()
    if over is not None or split:  # such an engine has no data_dir to come back from
        selected = tuple(op for op in case.operations if not isinstance(op, Restart))
        case = replace(case, operations=selected, durable=False)
    with tempfile.TemporaryDirectory(prefix="penstock-case-") as folder:
        model = OracleSystem()
        if split:
            engine: EngineSystem = SplitSystem(case.seed, shards=case.shards)
        else:
            data_dir = Path(folder) / "data" if case.durable else None
            engine = EngineSystem(shards=case.shards, data_dir=data_dir, engine=over, changes=over is None)
        try:
            return _run(case, model, engine, tally)
        except TooLarge:
            tally.too_large += 1  # what came before agreed
            return None
        finally:
            engine.close()


def _run(case: Case, model: OracleSystem, engine: EngineSystem, tally: Tally) -> Difference | None:
    live: list[str] = []
    for index, operation in enumerate(case.operations):
        expected = operation.apply(model, tally)
        try:
            got = operation.apply(engine, tally)
        except Exception as error:  # noqa: BLE001  any error of the engine is a difference
            return Difference(index, operation, f"{type(error).__name__}: {error}")
        if isinstance(operation, Ask):
            what = difference(expected, _as_ordered(got, expected))
            if what:
                return Difference(index, operation, what)
        if isinstance(operation, Register):
            live.append(operation.name)
        if isinstance(operation, Stop):
            live.remove(operation.name)
        for name in live:
            what = compare(name, model.poll(name), engine.poll(name))
            if what:
                return Difference(index, operation, what)
        if isinstance(operation, Push | PushMany) and model.late(operation.iri) != engine.late(operation.iri):
            return Difference(index, operation, "one counts it late, the other does not")
    return None


def _as_ordered(got: Any, expected: Any) -> Any:
    return (
        replace(got, ordered=True) if isinstance(got, Rows) and isinstance(expected, Rows) and expected.ordered else got
    )


def compare(name: str, expected: list[Reported], got: list[Reported]) -> str | None:
    """Compare the evaluations that one operation brought."""
    times, found = [e.time for e in expected], [e.time for e in got]
    if times != found:
        return f"{name} should report at {times}, reported at {found}"
    for due, given in zip(expected, got, strict=True):
        if given.fault:
            return f"{name} at {due.time}: {given.fault}"
        for window, bounds in due.windows.items():
            # A window of everything has no nominal start, and a count window that never reported has none either.
            have = given.windows.get(window)
            if have is None or have[1] != bounds[1] or (bounds[0] is not None and have != bounds):
                return f"{name} at {due.time}: window {window} is {bounds}, reported {have}"
        what = difference(due.answer, _as_ordered(given.answer, due.answer))
        if what:
            return f"{name} at {due.time} ({due.windows}): {what}"
    return None


def check_model(case: Case, tally: Tally) -> int:
    """Run the model alone (its references check one another); returns the number of evaluations."""
    model, count, live = OracleSystem(), 0, []
    for operation in case.operations:
        operation.apply(model, tally)
        if isinstance(operation, Register):
            live.append(operation.name)
        if isinstance(operation, Stop):
            live.remove(operation.name)
        count += sum(len(model.poll(name)) for name in live)
    return count


def shrink(case: Case, limit: int = 400) -> tuple[Case, Difference]:
    """Delete operations, halves first, as long as the case still differs in the same kind of way."""
    found = run(case)
    assert found is not None
    best, runs = replace(case, operations=case.operations[: found.index + 1]), 0
    size = len(best.operations) // 2
    while size:
        start = 0
        while start < len(best.operations) and runs < limit:
            rest = best.operations[:start] + best.operations[start + size :]
            candidate = replace(best, operations=rest)
            runs += 1
            outcome = _try(candidate, found) if _sound(candidate) else None
            if outcome is None:
                start += size
            else:
                best, found = replace(candidate, operations=rest[: outcome.index + 1]), outcome
        size //= 2
    return best, found


def _sound(case: Case) -> bool:
    """A script must still declare the streams and register the queries that it uses, and keep its graphs."""
    selected = case.operations
    declared = {op.iri for op in selected if isinstance(op, Declare)}
    names = {op.name for op in selected if isinstance(op, Register)}
    used = {getattr(op, "iri", None) for op in selected} - {None}
    return (
        used <= declared
        and all(op.name in names for op in selected if isinstance(op, Stop))
        and any(isinstance(op, Load) for op in selected)
    )


def _try(case: Case, before: Difference) -> Difference | None:
    try:
        found = run(case)
    except Exception:  # noqa: BLE001  a script that the model cannot run is no smaller case
        return None
    same_kind = (
        found is not None
        and found.what.split("\n")[0].split(":")[0][:9] == before.what.split("\n")[0].split(":")[0][:9]
    )
    return found if same_kind else None
