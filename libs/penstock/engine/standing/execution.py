"""The native execution of a plan for the members of a cohort. This module executes each factor of the plan, enforces
limits, and retries after the failure of a store.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import numpy as np

from penstock.core import _native as native
from penstock.engine.answers.factors import Product
from penstock.engine.answers.rows import Changes, Rows, joined
from penstock.engine.standing.last_run import profiles_of
from penstock.errors import DataPlaneError, LimitError, PenstockError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from penstock.core._native import Ids
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.oneshot.engine_catalogue import Planned
    from penstock.engine.standing.last_run import LastRun

_log = logging.getLogger("penstock.engine")
_MAX_SPLITS = 64  # maximum number of additional executions to find the members that exceed a limit
MAX_RETRIES = 3
"""Maximum number of retries of an evaluation after failures of stores."""
_LEAST_S = 1e-9  # shortest timeout: expires at the first check of the clock (0 means no limit)


class Execution:
    """The native execution of a plan at one instant. If the execution exceeds a limit, the plan is executed for smaller
    and smaller parts of the members. This finds the members that exceed the limit.

    `reopen` returns new sources after the failure of a store. `bounds` contains the (start, end] of each window in ms.
    `since` is the `answer_id` of an earlier execution for the same members, or 0. If `since` is not 0, the method
    `members` can return the changes since that answer instead of rows.
    """

    def __init__(
        self,
        core: EngineCore,
        plan: Planned,
        sources: list[native.Source],
        reopen: Callable[[], list[native.Source]],
        time: int,
        bounds: Sequence[tuple[int | None, int]],
        last_run: LastRun,
        since: int = 0,
    ) -> None:
        self._core = core
        self._plan = plan
        self._sources = sources
        self._reopen = reopen
        self._retries = 0
        self._time = time
        self._windows = [(native_start(start), end) for start, end in bounds]
        self._splits = 0
        self._last_run = last_run
        self._since = since
        self.answer_id = 0  # of this execution's answer; 0 if no later execution can refer to the answer

    def members(
        self,
        seed: tuple[Ids, ...],
        parameters: native.Seed | tuple[Ids, ...] | None = None,
        failure: PenstockError | None = None,
    ) -> tuple[Rows | Changes | Product, dict[int, PenstockError]]:
        """Execute the plan for the members of a seed. Returns the rows of the members that succeed, and the errors of
        the other members by member number.

        `parameters` is the seed in another form (see `Membership`), or None. If `failure` is not None, the plan is not
        executed, and all members fail with the error `failure`.

        UnavailableError if the dictionary or the stored graph cannot be read now: the caller must retry the evaluation.
        """
        if failure is not None:
            return self._failed(seed, failure)
        given = seed if parameters is None else parameters
        try:
            return self._product(seed, given) if self._plan.factors else self._execute(seed, given), {}
        except LimitError as error:
            return self._split(seed, error)
        except MemoryError as error:
            limit = LimitError("the evaluation ran out of memory")
            limit.__cause__ = error
            return self._split(seed, limit)
        except DataPlaneError as error:
            if self._retries >= MAX_RETRIES:
                self._core.store.give_up(error)
                return self._failed(seed, error)
            self._retries += 1
            self._sources = self._reopen()
            return self.members(seed, parameters)
        except UnavailableError:
            raise  # the caller waits for the dictionary or the stored graph
        except Exception as error:  # noqa: BLE001 - the evaluation fails, and the engine continues
            _log.exception("an evaluation at %d failed", self._time)
            failure = error if isinstance(error, PenstockError) else PenstockError(f"internal error: {error!r}")
            return self._failed(seed, failure)

    def _failed(self, seed: tuple[Ids, ...], error: PenstockError) -> tuple[Rows, dict[int, PenstockError]]:
        self._split_record()
        return self._no_rows(), {int(member): error for member in seed[0]}

    def _split(self, seed: tuple[Ids, ...], error: PenstockError) -> tuple[Rows, dict[int, PenstockError]]:
        """Bisect the members until only the members that exceed a limit fail (ADR 6). The bisection ends after
        _MAX_SPLITS additional executions. From then on, if a part of the members exceeds the limit, all members of this
        part fail.
        """
        count = len(seed[0])
        if count == 1 or self._splits >= _MAX_SPLITS:
            return self._failed(seed, error)
        self._splits += 2
        self._since = 0
        self._split_record()
        halves = (tuple(c[: count // 2] for c in seed), tuple(c[count // 2 :] for c in seed))
        parts = [self.members(half) for half in halves]
        self.answer_id = 0
        rows = joined([_all_rows(rows).published() for rows, _ in parts])
        return rows, {member: why for _, errors in parts for member, why in errors.items()}

    def _no_rows(self) -> Rows:
        empty = np.empty(0, np.uint64)
        return Rows(empty, tuple(empty for _ in self._plan.physical.outputs), None)

    def _product(self, seed: tuple[Ids, ...], parameters: native.Seed | tuple[Ids, ...]) -> Product:
        """Execute the plan of each factor over the same sources. The rows of an answer are the cross product of the
        factors' rows.

        A reader can expand the cross product into one table. LimitError if this table would exceed the memory limit of
        an evaluation.
        """
        physical = self._plan.physical
        results: list[native.Result] = []
        profiles = self._profiles()
        for plan, profile in zip(self._plan.factors, profiles, strict=True):
            spent_s = sum(result.nanos for result in results) / 1e9
            results.append(self._result(plan, seed, parameters, profile, spent_s))
        slots = [[slot for slot in result.slots if slot != physical.member] for result in results]
        parts = tuple(self._rows(result, held).published() for result, held in zip(results, slots, strict=True))
        place = {slot: (i, held.index(slot)) for i, held in enumerate(slots) for slot in held}
        found = Product(parts, tuple(place[slot] for _, slot in physical.outputs))
        limit = self._core.limits.evaluation_memory_mb << 20
        if limit and found.bytes() > limit:
            raise LimitError("the evaluation exceeded its memory limit")
        self._record(profiles, len(found))
        return found

    def _execute(self, seed: tuple[Ids, ...], parameters: native.Seed | tuple[Ids, ...]) -> Rows | Changes:
        profiles = self._profiles()
        result = self._result(self._plan.native, seed, parameters, profiles[0])
        self._record(profiles, None)
        self.answer_id = result.id
        if result.added is not None:
            return self._changes(result, result.added)
        return self._rows(result, [slot for _, slot in self._plan.physical.outputs])

    def _profiles(self) -> list[native.Profile]:
        """Return the profiles that the next execution fills: the profiles of the cohort, or new profiles if the
        evaluation was split.
        """
        return self._last_run.profiles if self._last_run.parts is None else profiles_of(self._plan)

    def _record(self, profiles: list[native.Profile], product: int | None) -> None:
        parts = self._last_run.parts
        if parts is None:
            self._last_run.product = product
        else:
            parts.append((profiles, product))

    def _split_record(self) -> None:
        """From now on, record each successful execution as a part of the evaluation."""
        if self._last_run.parts is None:
            self._last_run.parts = []

    def _changes(self, result: native.Result, added: int) -> Changes:
        positions = {slot: i for i, slot in enumerate(result.slots)}
        member = self._plan.physical.member
        assert member is not None
        columns = tuple(result.column(positions[slot]) for _, slot in self._plan.physical.outputs)
        rows = Rows(result.column(positions[member]), columns, result.local)
        order = np.argsort(rows.member[:added], kind="stable"), np.argsort(rows.member[added:], kind="stable")
        return Changes(rows.take(order[0]), rows.take(order[1] + added))

    def _rows(self, result: native.Result, slots: Sequence[int]) -> Rows:
        """Return the columns for some slots of a result. The rows are sorted by member."""
        member = self._plan.physical.member
        assert member is not None
        result.sort_by(member)
        positions = {slot: i for i, slot in enumerate(result.slots)}
        columns = tuple(result.column(positions[slot]) for slot in slots)
        return Rows(result.column(positions[member]), columns, result.local)

    def _result(
        self,
        plan: native.Plan,
        seed: tuple[Ids, ...],
        parameters: native.Seed | tuple[Ids, ...],
        profile: native.Profile,
        spent_s: float = 0.0,
    ) -> native.Result:
        """Execute a plan. `spent_s` is the part of the time limit, in s, that earlier factors have used."""
        limits, physical = self._core.limits, self._plan.physical
        timeout_s = limits.evaluation_timeout_s
        if timeout_s > 0:
            timeout_s = max(timeout_s - spent_s, _LEAST_S)
        return native.execute(
            plan,
            self._core.store.labels,
            self._core.dictionary,
            self._sources,
            parameters,
            seed_rows=len(seed[0]),
            now_ms=self._time,
            windows=self._windows,
            timeout_s=timeout_s,
            memory_bytes=limits.evaluation_memory_mb << 20,
            random_seed=self._core.random.getrandbits(63),
            foreign=self._core.foreign,
            profile=profile,
            forker=self._core.forker(self._sources[0], physical),
            absent=self._core.absent([self._plan.constant_ids, *seed[1:]]) if self._core.dictionary.partial else (),
            since=self._since,
            totals=self._core.maintenance,
        )


def _all_rows(rows: Rows | Changes | Product) -> Rows:
    assert not isinstance(rows, Changes)  # only an execution of all members returns changes
    return rows.rows() if isinstance(rows, Product) else rows


def native_start(start: int | None) -> int:
    """Return the start of a window for the native module. `None` (no start) becomes the smallest 64-bit integer."""
    return -(1 << 63) if start is None else start
