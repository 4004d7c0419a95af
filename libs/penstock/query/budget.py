"""Limits on the cost of parsing, checking, planning and compiling a text (docs/adr/0059).

Some limits are counts. These limits refuse the same texts on every machine. In addition, the processor time of the
thread is limited. A `planning` block sets the current budget of its thread. The code in the block calls `spend` and
`charge`.
"""

from __future__ import annotations

from contextvars import ContextVar
from dataclasses import dataclass
from time import thread_time
from typing import TYPE_CHECKING, Any

from penstock.query.text_faults import Fault, LimitFault, query_error

if TYPE_CHECKING:
    from types import TracebackType

MOST_NESTING = 100
"""Maximum of `max_nesting`. Planning is recursive: deeper patterns would overflow Python's stack."""

_ACCEPTED_SLACK = (
    2  # factor for counts: they depend slightly on the join order, and thus on the data of the process that plans
)
_LOOK_EVERY = 64  # units of work between two checks of the clock; a unit takes about ten microseconds
_current: ContextVar[Budget | None] = ContextVar("planning budget", default=None)


@dataclass(frozen=True, slots=True)
class PlanningLimits:
    """Limits on a text and its plan.

    - `max_text_bytes`: size of a text in UTF-8.
    - `max_query_tokens`: tokens of a query; also tokens of an update outside of INSERT DATA and DELETE DATA.
    - `max_update_tokens`: tokens of an update, including its data.
    - `max_windows`: windows of a query.
    - `max_nesting`: levels of nested groups, expressions, `[ … ]` and paths; at most 100. A group counts as two levels.
      A chain of patterns, such as OPTIONALs, can have twice as many levels.
    - `max_plan_nodes`: operators of a plan.
    - `max_plan_depth`: operators on the longest path of a plan; at most 1,000.
    - `max_entailment_pairs`: for a query with entailment, pairs of terms in the closure of the schema; also rows in the
      rewriting of one pattern.
    - `planning_timeout_s`: processor time in s for parsing and planning a query (0 = no limit). The time for the data
      of updates does not count.
    - `planning_memory_mb`: estimated memory of a plan in MiB (0 = no limit).
    """

    max_text_bytes: int = 16 << 20
    max_query_tokens: int = 150_000
    max_update_tokens: int = 1_000_000
    max_windows: int = 64
    max_nesting: int = MOST_NESTING
    max_plan_nodes: int = 50_000
    max_plan_depth: int = 1_000
    max_entailment_pairs: int = 200_000
    planning_timeout_s: float = 2.0
    planning_memory_mb: int = 512

    def __post_init__(self) -> None:
        """Raise ValueError if `max_nesting` or `max_plan_depth` is out of range."""
        if not 1 <= self.max_nesting <= MOST_NESTING:
            raise ValueError(f"max_nesting must be between 1 and {MOST_NESTING}, not {self.max_nesting}")
        if not 1 <= self.max_plan_depth <= 1_000:
            raise ValueError(f"max_plan_depth must be between 1 and 1000, not {self.max_plan_depth}")


class Budget:
    """The remaining budget of a text. `at`: the offset of the construct that was processed last. `facts`: a cache of
    properties of algebra nodes. A key of the cache is a function and the identity of a node.

    `accepted`: whether the text was accepted before, possibly by another process. The processor time for such a text is
    not limited. The number of operators, the depth and the memory of its plan can be twice the limits.

    If the processor time between two checks of the clock exceeds half of the limit, this time is a pause. The first
    pause does not count. A pause can be a garbage collection of a large process, or the suspension of a virtual
    machine. Operating systems count such a pause as processor time of the running thread. A second pause counts.
    """

    __slots__ = (
        "_deadline",
        "_left",
        "_looked",
        "_paused",
        "_spent",
        "at",
        "bytes",
        "facts",
        "limits",
        "nodes",
        "slack",
        "text",
    )

    def __init__(self, limits: PlanningLimits, text: str, *, accepted: bool = False) -> None:
        self.limits = limits
        self.text = text
        self.at = 0
        self.nodes = 0
        self.bytes = 0
        self.slack = _ACCEPTED_SLACK if accepted else 1
        self.facts: dict[Any, dict[int, tuple[Any, Any]]] = {}
        self._spent = 0
        timeout_s = limits.planning_timeout_s
        self._looked = thread_time()
        self._paused = False
        self._deadline = None if accepted or timeout_s <= 0 else self._looked + timeout_s
        self._left = 0.0

    def spend(self, at: int = -1, work: int = 1) -> None:
        """Count units of work (about ten microseconds each) for the construct at offset `at`. Check the clock (`look`)
        every _LOOK_EVERY units.
        """
        if at >= 0:
            self.at = at
        self._spent += work
        if self._spent >= _LOOK_EVERY:
            self.look()

    def look(self) -> None:
        """Check the clock. Raises LimitFault if the time is over."""
        self._spent = 0
        if self._deadline is None:
            return
        before, self._looked = self._looked, thread_time()
        pause = self._looked - before
        if pause > self.limits.planning_timeout_s / 2 and not self._paused:
            self._paused = True
            self._deadline += pause
        if self._looked > self._deadline:
            self.exceeded("planning_timeout_s", f"the text takes more than {self.limits.planning_timeout_s:g} s")

    def defer(self, seconds: float) -> None:
        """Extend the deadline by a time that was not spent on the text."""
        if self._deadline is not None:
            self._deadline += seconds
            self._looked += seconds

    def time(self, on: bool) -> None:
        """Continue the clock (`on` is true), or stop the clock. The clock is stopped while data of updates are read."""
        if self._deadline is None:
            self._looked = thread_time()
            self._deadline = self._looked + self._left if on and self._left else None
        elif not on:
            self._left = self._deadline - thread_time()
            self._deadline = None

    def charge(self, size: int, at: int = -1) -> None:
        """Add `size` bytes to the memory of the plan. LimitFault above the limit."""
        if at >= 0:
            self.at = at
        self.bytes += size
        most = self.limits.planning_memory_mb << 20
        if 0 < most * self.slack < self.bytes:
            self.exceeded("planning_memory_mb", f"the plan takes more than {self.limits.planning_memory_mb} MB")

    def add_node(self, depth: int, size: int) -> None:
        """Count one more operator of the plan. `depth`: number of operators on the operator's longest path to a leaf.
        `size`: the operator's size in bytes. LimitFault above a limit.
        """
        self.nodes += 1
        limits = self.limits
        if self.nodes > limits.max_plan_nodes * self.slack:
            self.exceeded("max_plan_nodes", f"the plan has more than {limits.max_plan_nodes} operators")
        if depth > limits.max_plan_depth * self.slack:
            self.exceeded("max_plan_depth", f"the plan has more than {limits.max_plan_depth} steps in a row")
        self.charge(size)
        self.spend()

    def exceeded(self, name: str, message: str, at: int | None = None) -> None:
        """Raise LimitFault for the limit `name`, at offset `at`. If `at` is None, the offset is that of the construct
        that was processed last.
        """
        raise LimitFault(f"{message} ({name}): split the query", self.at if at is None else at)


class planning:  # noqa: N801 - reads as a statement: with planning(limits, text)
    """The block (`with` statement) in which a text is parsed, checked or planned.

    A nested block uses the budget of the outer block. With the argument `budget`, the block continues the budget of an
    earlier block for the same text and thread. If the code in the block raises a Fault, the block raises a QueryError
    in its place. If stack or memory is exhausted, the block raises QueryLimitError.
    """

    __slots__ = ("_budget", "_token")

    def __init__(
        self, limits: PlanningLimits, text: str, *, accepted: bool = False, budget: Budget | None = None
    ) -> None:
        self._token: Any = None
        self._budget = _current.get() or budget or Budget(limits, text, accepted=accepted)

    def __enter__(self) -> Budget:
        if _current.get() is None:
            self._token = _current.set(self._budget)
        return self._budget

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._token is not None:
            _current.reset(self._token)
            self._budget.facts.clear()
        budget = self._budget
        if isinstance(error, Fault):
            raise query_error(error, budget.text) from None
        if isinstance(error, RecursionError):
            message = "the query is nested too deeply for the stack of the caller (max_nesting)"
            raise query_error(LimitFault(message, budget.at), budget.text) from None
        if isinstance(error, MemoryError):
            raise query_error(LimitFault("there is no memory left for the plan", budget.at), budget.text) from error


def current() -> Budget | None:
    """Return the budget of the thread's current block, None outside of a block."""
    return _current.get()


def spend(at: int = -1, work: int = 1) -> None:
    """Count work in the current budget, if the thread has a budget (`Budget.spend`)."""
    budget = _current.get()
    if budget is not None:
        budget.spend(at, work)


def charge(size: int, at: int = -1) -> None:
    """Count bytes of the plan in the current budget, if the thread has a budget (`Budget.charge`)."""
    budget = _current.get()
    if budget is not None:
        budget.charge(size, at)
