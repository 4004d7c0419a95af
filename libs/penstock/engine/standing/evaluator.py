"""The evaluation of a cohort at an instant: sources, native execution, stream operator, and the resulting block."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from penstock.engine.answers.answer_versions import AnswerChanges, AnswerVersion, difference
from penstock.engine.answers.factors import Product
from penstock.engine.answers.result_blocks import Block, Reading
from penstock.engine.answers.rows import Changes, Rows, joined
from penstock.engine.standing.execution import MAX_RETRIES, Execution
from penstock.engine.standing.last_run import LastRun
from penstock.engine.standing.stream_operator import as_stream, reported
from penstock.errors import DataPlaneError, LimitError, QueryError
from penstock.event_time.grid import batch_of
from penstock.query.ir import Form
from penstock.rdf.terms import private_ids

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from penstock.core import _native as native
    from penstock.core._native import Ids
    from penstock.engine.answers.answer_values import Decoder
    from penstock.engine.engine_core import EngineCore
    from penstock.engine.history.past_queries import History
    from penstock.engine.intake.streams import Streams
    from penstock.engine.oneshot.engine_catalogue import Planned
    from penstock.engine.standing.groups import Cohort, Group
    from penstock.errors import PenstockError

    AsOf: TypeAlias = Callable[[Group, int], list[tuple[int, int]]]

# The operators' times are measured once in this number of executions, because the measurement slows an execution.
_TIMED_EVERY = 64


class Evaluator:
    """Evaluates cohorts at their instants. An evaluation moves the cohort's windows, and updates the cohort's
    `predecessor`, `last_run` and `executions`. An evaluation can also replace the plan of the group.

    `as_of(group, instant)` returns additional bounds for the view of the stored graph, as pairs (stream number, batch
    number). Because of these bounds, even a late evaluation reads the stored graph as it was when the instant became
    due. `history` is the past of an embedded engine, in which queries can begin.
    """

    def __init__(
        self, core: EngineCore, streams: Streams, as_of: AsOf | None = None, history: History | None = None
    ) -> None:
        self._core = core
        self._history = history
        self._streams = streams
        self._as_of = as_of

    def evaluate(self, cohort: Cohort, time: int) -> Block:
        """Evaluate a cohort at instant `time`, and return the block of answers. All streams must have closed their
        batches up to and including `time`. UnavailableError if the stored graph or the dictionary cannot be read now:
        the caller must retry the evaluation.
        """
        group, query = cohort.group, cohort.group.query
        bounds = [window.move(time) for window in cohort.windows]
        reading = self._reading(cohort, time, dict(zip(group.window_names, bounds, strict=True)))
        sources, plan, failure = self._planned(cohort, time)
        if plan.blind:
            self._core.store.give_up(
                DataPlaneError("the stored graph became unavailable during a count", "disconnected")
            )
        last = cohort.last_run
        if last is None or last.planned is not plan:
            last = cohort.last_run = LastRun(plan)
        elif cohort.executions % _TIMED_EVERY == 0:
            last.timed = True
        last.begin(time)
        rows, errors, answer_id = self._executed(cohort, plan, sources, time, bounds, last, failure)
        if query.changes and query.form is Form.ASK and isinstance(rows, Rows):
            rows = Rows(np.unique(rows.member), (), rows.decoder)
        cohort.executions += 1
        last.failed = len(errors)
        predecessor, changed = cohort.predecessor, None
        if isinstance(rows, Changes):
            assert predecessor is not None
            changes = rows
            predecessor = predecessor.followed_by(changes, answer_id)
            rows = changes.added if query.changes else reported(query.r2s, changes)
            if query.changes:
                changed = self._answer_changes(cohort, predecessor, changes)
        elif isinstance(rows, Rows) and group.compares:
            now, before, predecessor = self._compared(cohort, rows, errors)
            predecessor.answer_id = answer_id if not errors and self._lasting(predecessor.ids()) else 0
            if query.changes:
                changes = Changes(difference(now, before), _removed(now, before))
                changed = self._answer_changes(cohort, predecessor, changes)
            rows = now if query.changes else as_stream(query.r2s, now, before)
        if isinstance(rows, Rows) and group.publishes is not None:
            rows = rows.published()
        if changed is None:
            block = self._block(cohort, reading, rows, errors)
        else:
            block = self._block_of_changes(cohort, reading, changed, rows.decoder, errors)
        cohort.predecessor = predecessor  # last, so that an interrupted evaluation (Ctrl-C) can be repeated
        return block

    def _executed(
        self,
        cohort: Cohort,
        plan: Planned,
        sources: list[native.Source],
        time: int,
        bounds: list[tuple[int | None, int]],
        last: LastRun,
        failure: PenstockError | None,
    ) -> tuple[Rows | Changes | Product, dict[int, PenstockError], int]:
        """Execute a plan. Returns three values. The first value is the rows, or the changes since the predecessor (see
        `Changes.published`). The second value contains the errors by member number. The third value is the id of the
        answer. If the changes contain ids that cannot be compared with the predecessor, the plan is executed again for
        the complete answer.
        """
        members, since = cohort.members, self._known_answer(cohort)
        while True:
            run = Execution(self._core, plan, sources, lambda: self._sources(cohort, time), time, bounds, last, since)
            rows, errors = run.members(members.seed, members.parameters, failure)
            if not isinstance(rows, Changes):
                return rows, errors, run.answer_id
            changes = rows.published()
            columns = (*changes.added.columns, *changes.removed.columns)
            if self._lasting(columns):
                self._core.require(columns)  # the commit and the next instants need the terms of these rows
                return changes, errors, run.answer_id
            since = 0

    def _lasting(self, columns: Sequence[Ids]) -> bool:
        """Return whether the ids in `columns` denote the same terms in all later evaluations. The result is False if
        `columns` contains a private id of a partial dictionary, because the same term can have a global id later.
        """
        return not (self._core.dictionary.partial and columns and len(private_ids(np.concatenate(columns))))

    def _planned(self, cohort: Cohort, time: int) -> tuple[list[native.Source], Planned, PenstockError | None]:
        """Return the sources and the plan of an execution, and an error or None. A plan with entailment depends on the
        schema in the first source. After the failure of a store, the call reads the schema in a new view.

        There is an error if the schema cannot be read within the limits, or if the entailment of a changed schema
        exceeds a limit. The execution then fails with this error, and the plan in the result is the earlier plan.
        """
        retries = 0
        while True:
            sources, plan = self._sources(cohort, time), cohort.group.plan
            assert plan is not None
            try:
                return sources, cohort.group.current_plan(cohort, self._core, self._streams, sources[0]), None
            except (LimitError, QueryError) as error:
                return sources, plan, error
            except DataPlaneError as error:
                if retries >= MAX_RETRIES:
                    self._core.store.give_up(error)
                    return sources, plan, error
                retries += 1

    def _known_answer(self, cohort: Cohort) -> int:
        """Return the `answer_id` of the cohort's predecessor. With this id, the execution can return only the changes
        since that answer. The result is 0 if the execution must return complete rows. This is so in three cases: there
        is no predecessor, the members have changed since the predecessor, or the rows of the predecessor contain
        private ids.
        """
        before = cohort.predecessor
        if before is None or before.members is not cohort.members:
            return 0
        return before.answer_id

    def _sources(self, cohort: Cohort, time: int) -> list[native.Source]:
        """Return the sources of the plan: first the view of the stored graph, then the windows (semantics.md §3). For
        each stream that the query names, the view excludes the batches after `time`.
        """
        if (history := self._past(cohort, time)) is not None:
            return [history.view(cohort.group, time), *(window.source for window in cohort.windows)]
        assert cohort.group.plan is not None
        reads = cohort.group.plan.reads_stored
        bounds: list[tuple[int, int]] = []  # if the graph is not read, its state at `time` is possibly released
        if reads:
            bounds += ((stream.number, batch_of(time, stream.batch_ms)) for stream in cohort.group.streams)
        if reads and self._as_of is not None:
            bounds += self._as_of(cohort.group, time)
        stored = self._core.stored(bounds, read=reads)
        return [stored, *(window.source for window in cohort.windows)]

    def _past(self, cohort: Cohort, time: int) -> History | None:
        """Return the history if a cohort's evaluation at instant `time` reads the past. Otherwise, return None."""
        history = self._history
        return history if history is not None and history.is_past(cohort.group, time) else None

    def _reading(self, cohort: Cohort, time: int, windows: dict[str, tuple[int | None, int]]) -> Reading:
        vts = {stream.iri: batch_of(time, stream.batch_ms) for stream in cohort.group.streams}
        if (history := self._past(cohort, time)) is not None:
            return Reading(time, windows, history.snapshot(cohort.group, time), vts, self._core.attempt)
        vts = self._streams.closed_batches() | vts
        return Reading(time, windows, self._core.store.latest(), vts, self._core.attempt)

    def _compared(
        self, cohort: Cohort, rows: Rows, errors: Mapping[int, PenstockError]
    ) -> tuple[Rows, Rows | None, AnswerVersion]:
        """Return the rows of this instant, the rows of the previous instant (None if there is none), and the version of
        the answer for the next instant.

        The caller compares the rows of the two instants. A failed member has no rows in the first two results. The
        version contains the rows that the failed member had at the previous instant.
        """
        now, members, previous = rows.published(), cohort.members, cohort.predecessor
        before = previous.renumbered(members) if previous is not None else None
        if self._core.dictionary.partial:
            now = now.settled(self._core.dictionary)
            before = None if before is None else before.settled(self._core.dictionary)
            # The cache must contain these terms for the next instant (ADR 27).
            self._core.require((*now.columns, *(before.columns if before is not None else ())))
        retained = now
        if errors and before is not None:
            failed = np.isin(before.member, np.fromiter(errors, np.uint64))
            stays = before.take(np.flatnonzero(failed))
            retained = joined([now, stays])
            before = before.take(np.flatnonzero(~failed))
        return now, before, AnswerVersion(members, retained, leases=previous.leases if previous is not None else ())

    def _answer_changes(self, cohort: Cohort, now: AnswerVersion, changes: Changes) -> AnswerChanges:
        """Return the content of a block with `changes`: the version `now` of the answer, and the changes since the
        previous version. The method also marks the terms of the version as used. If the version has no lease yet, the
        method takes a lease that retains these terms.
        """
        dictionary, (rows, _) = self._core.dictionary, now.parts
        if not now.leases:
            now.leases = (dictionary.lease(),)
        previous = cohort.predecessor
        shared = previous is not None and previous.parts[0] is rows
        for column in changes.added.columns if shared else now.ids():
            dictionary.touch(column)
        size = changes.bytes + (0 if shared else rows.bytes)
        return AnswerChanges(now, changes, size, None if previous is None else previous.members)

    def _block(self, cohort: Cohort, reading: Reading, rows: Rows | Product, errors: dict[int, PenstockError]) -> Block:
        query = cohort.group.query
        if isinstance(rows, Product) and not len(rows.present):
            # No member has rows in all factors. The block then gets no factors, because no lease would retain their
            # terms.
            rows = rows.rows()
        product = rows if isinstance(rows, Product) else None
        (present, starts), held = rows.spans(), rows.held
        lease = None
        dictionary = self._core.dictionary
        has_keys = cohort.members.touch_keys(dictionary, None if errors or not query.report_nonempty else present)
        if (len(present) and held) or has_keys:
            lease = dictionary.lease()
            self._core.require(held)
            for column in held:
                dictionary.touch(column)
        return Block(
            reading=reading,
            form=query.form,
            variables=cohort.group.variables,
            columns=held if product is None else (),
            members=cohort.members,
            present=present,
            starts=starts,
            decoder=rows.decoder,
            lease=lease,
            errors=errors,
            product=product,
            sparse=query.report_nonempty,
        )

    def _block_of_changes(
        self,
        cohort: Cohort,
        reading: Reading,
        changed: AnswerChanges,
        decoder: Decoder | None,
        errors: dict[int, PenstockError],
    ) -> Block:
        """Return the block of an execution for a query that was registered with `changes`. The block refers to the
        version of the answer and does not copy the version's rows.
        """
        present = changed.changes.members
        cohort.members.touch_keys(self._core.dictionary, None if errors else present)
        return Block(
            reading=reading,
            form=cohort.group.query.form,
            variables=cohort.group.variables,
            columns=(),
            members=cohort.members,
            present=present,
            starts=np.zeros(len(present) + 1, np.int64),
            decoder=decoder,
            lease=changed.now.leases,
            errors=errors,
            changes=changed,
            sparse=cohort.group.query.report_nonempty,
        )


def _removed(now: Rows, before: Rows | None) -> Rows:
    return now.take(np.empty(0, np.int64)) if before is None else difference(before, now)
