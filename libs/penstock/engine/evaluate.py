"""One execution of a cohort: what it reads, the native run, the streaming operator, and the block that it leaves."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from penstock.engine.blocks import Block, Reading
from penstock.engine.difference import Predecessor, Rows, as_stream
from penstock.engine.grid import batch_of
from penstock.errors import AwayError, DataPlaneError, LimitError, PenstockError
from penstock.query.ir import RelationToStream
from penstock.store import _native as native

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.engine.answers import Ids
    from penstock.engine.cohorts import Cohort
    from penstock.engine.core import Core
    from penstock.engine.groups import Group
    from penstock.engine.planning import Planned
    from penstock.engine.streams import Streams

    AsOf: TypeAlias = Callable[[Group, int], list[tuple[int, int]]]

_log = logging.getLogger("penstock.engine")
_MAX_SPLITS = 64  # executions spent on finding which member of a group exceeds its budget
_MAX_RETRIES = 3  # of an evaluation that a node's end interrupted
_PROFILE_EVERY = 64


class Evaluator:
    """Runs cohorts at their instants. Windows of the cohort move; nothing else changes.

    `as_of` gives, for an instant that is evaluated later than it was due, further streams and their last batches that
    count: what the stored graph had absorbed by then.
    """

    def __init__(self, core: Core, streams: Streams) -> None:
        self._core = core
        self._streams = streams
        self.as_of: AsOf | None = None

    def evaluate(self, cohort: Cohort, time: int) -> Block:
        """Return the cohort's block at an instant whose batches are all closed."""
        group, query = cohort.group, cohort.group.query
        bounds = [window.move(time) for window in cohort.windows]
        reading = self._reading(cohort, time, dict(zip((c.name for c in query.windows), bounds, strict=True)))
        plan = group.current_plan(cohort, self._core, self._streams)
        run = _Run(self._core, plan, lambda: self._sources(cohort, time), time, bounds)
        run.profiled = cohort.executions % _PROFILE_EVERY == 0
        rows, errors = run.members(cohort.members.seed)
        cohort.executions += 1
        group.profile = run.profile or group.profile
        if query.r2s is not RelationToStream.RSTREAM:
            rows = self._difference(cohort, rows, errors)
        if group.publishes is not None:
            rows = rows.published()
        return self._block(cohort, reading, rows, errors)

    def _sources(self, cohort: Cohort, time: int) -> list[native.Source]:
        """The stored graph with exactly the batches up to t of the streams named, then the windows (SEMANTICS §3)."""
        bounds = [(stream.number, batch_of(time, stream.batch_ms)) for stream in cohort.group.streams]
        if self.as_of is not None:
            bounds += self.as_of(cohort.group, time)
        return [self._core.store.view(bounds), *(window.source for window in cohort.windows)]

    def _reading(self, cohort: Cohort, time: int, windows: dict[str, tuple[int | None, int]]) -> Reading:
        vts = {stream.iri: batch_of(time, stream.batch_ms) for stream in cohort.group.streams}
        vts = self._streams.closed_batches() | vts
        return Reading(time, windows, self._core.store.latest(), vts, self._core.attempt)

    def _difference(self, cohort: Cohort, rows: Rows, errors: Mapping[int, PenstockError]) -> Rows:
        """Apply ISTREAM or DSTREAM. A member whose part failed reports nothing and keeps its earlier predecessor."""
        now, members = rows.published(), cohort.members
        before = cohort.predecessor.renumbered(members) if cohort.predecessor is not None else None
        if self._core.dictionary.partial:
            now = now.settled(self._core.dictionary)
            before = None if before is None else before.settled(self._core.dictionary)
            # They are kept as terms (ADR 27); and nothing may be missing once the predecessor has changed.
            self._core.require((*now.columns, *(before.columns if before is not None else ())))
        kept = now
        if errors and before is not None:
            failed = np.isin(before.member, np.fromiter(errors, np.uint64))
            stays = before.take(np.flatnonzero(failed))
            kept = _joined([now, stays])
            before = before.take(np.flatnonzero(~failed))
        cohort.predecessor = Predecessor(members, kept)
        return as_stream(cohort.group.query.r2s, now, before)

    def _block(self, cohort: Cohort, reading: Reading, rows: Rows, errors: dict[int, PenstockError]) -> Block:
        query = cohort.group.query
        starts = rows.starts()
        lease = None
        if len(rows.member) and rows.columns:
            lease = self._core.dictionary.lease()
            self._core.require(rows.columns)
            for column in rows.columns:
                self._core.dictionary.touch(column)
        return Block(
            reading=reading,
            form=query.form,
            variables=tuple(variable.name for variable in query.variables),
            columns=rows.columns,
            members=cohort.members,
            present=rows.member[starts[:-1]],
            starts=starts,
            decoder=rows.decoder,
            lease=lease,
            errors=errors,
            sparse=query.report_nonempty,
        )


class _Run:
    """The native execution of one plan at one instant, split where a member exceeds the budget."""

    def __init__(
        self,
        core: Core,
        plan: Planned,
        sources: Callable[[], list[native.Source]],
        time: int,
        bounds: Sequence[tuple[int | None, int]],
    ) -> None:
        self._core = core
        self._plan = plan
        self._open = sources
        self._sources = sources()
        self._retries = 0
        self._time = time
        self._windows = [(native_start(start), end) for start, end in bounds]
        self._splits = 0
        self.profiled = False
        self.profile: list[tuple[int, int, int]] = []

    def members(self, seed: tuple[Ids, ...]) -> tuple[Rows, dict[int, PenstockError]]:
        """Return the rows of all members of a seed, and why some have none."""
        try:
            return self._execute(seed), {}
        except LimitError as error:
            return self._split(seed, error)
        except MemoryError as error:
            limit = LimitError("the evaluation ran out of memory")
            limit.__cause__ = error
            return self._split(seed, limit)
        except DataPlaneError as error:
            if self._retries >= _MAX_RETRIES:
                return self._failed(seed, error)
            self._retries += 1
            self._sources = self._open()  # which waits for the node that has gone
            return self.members(seed)
        except AwayError:
            raise  # the evaluation waits for whoever has the terms
        except Exception as error:  # noqa: BLE001 - one evaluation fails, the engine goes on
            _log.exception("an evaluation at %d failed", self._time)
            failure = error if isinstance(error, PenstockError) else PenstockError(f"internal error: {error!r}")
            return self._failed(seed, failure)

    def _failed(self, seed: tuple[Ids, ...], error: PenstockError) -> tuple[Rows, dict[int, PenstockError]]:
        return self._no_rows(), {int(member): error for member in seed[0]}

    def _split(self, seed: tuple[Ids, ...], error: PenstockError) -> tuple[Rows, dict[int, PenstockError]]:
        """Halve the group until only the guilty err (DESIGN §6.2); past a bound of work, all that is left errs."""
        count = len(seed[0])
        if count == 1 or self._splits >= _MAX_SPLITS:
            return self._failed(seed, error)
        self._splits += 2
        halves = (tuple(c[: count // 2] for c in seed), tuple(c[count // 2 :] for c in seed))
        parts = [self.members(half) for half in halves]
        rows = _joined([rows.published() for rows, _ in parts])
        return rows, {member: why for _, errors in parts for member, why in errors.items()}

    def _no_rows(self) -> Rows:
        empty = np.empty(0, np.uint64)
        return Rows(empty, tuple(empty for _ in self._plan.physical.outputs), None)

    def _execute(self, seed: tuple[Ids, ...]) -> Rows:
        limits, physical = self._core.limits, self._plan.physical
        result = native.execute(
            self._plan.native,
            self._core.store,
            self._core.dictionary,
            self._sources,
            seed,
            seed_rows=len(seed[0]),
            now_ms=self._time,
            windows=self._windows,
            timeout_s=limits.evaluation_timeout_s,
            memory_bytes=limits.evaluation_memory_mb << 20,
            random_seed=self._core.random.getrandbits(63),
            foreign=self._core.foreign,
            profile=self.profiled,
            forker=self._core.forker(self._sources[0], physical),
            absent=self._core.absent([self._plan.constant_ids, *seed[1:]]) if self._core.dictionary.partial else (),
        )
        self.profile = result.profile
        assert physical.member is not None
        result.sort_by(physical.member)
        positions = {slot: i for i, slot in enumerate(result.slots)}
        columns = tuple(result.column(positions[slot]) for _, slot in physical.outputs)
        return Rows(result.column(positions[physical.member]), columns, result.local)


def native_start(start: int | None) -> int:
    """Return a window's start as the core takes it: kNever where the window has none."""
    return -(1 << 63) if start is None else start


def _joined(parts: Sequence[Rows]) -> Rows:
    """Return (published) rows of several executions as one, sorted by member."""
    member = np.concatenate([rows.member for rows in parts])
    columns = tuple(np.concatenate(columns) for columns in zip(*(rows.columns for rows in parts), strict=True))
    decoder = next((rows.decoder for rows in parts if rows.decoder is not None), None)
    return Rows(member, columns, decoder).take(np.argsort(member, kind="stable"))
