"""What one text may cost before it runs: reading, checking, planning, compiling (docs/adr/0059).

Counts refuse a text in the same way on every machine. The clock, the thread's processor time, is a backstop behind
them. A `planning` block makes its budget the current one of the thread; code inside calls `spend` and `charge`.
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
"""Planning recurses over patterns: deeper ones would not fit Python's stack."""

_ACCEPTED_SLACK = 2  # counts depend a little on the order of joins, so on the data of the process that plans
_LOOK_EVERY = 64  # units of work between looks at the clock; a unit takes some ten microseconds
_current: ContextVar[Budget | None] = ContextVar("planning budget", default=None)


@dataclass(frozen=True, slots=True)
class PlanningLimits:
    """Bounds on a text and on its plan.

    max_text_bytes: UTF-8 bytes of a text.
    max_query_tokens, max_update_tokens: words and signs of a query, and of a text of INSERT DATA.
    max_windows: windows in one query.
    max_nesting: groups (which count double), expressions, `[ … ]` and paths inside one another; at most 100. Patterns
    that build on one another, as in a chain of OPTIONAL, may be twice as many.
    max_plan_nodes, max_plan_depth: operators of a plan, and operators that each read the one below; at most 1,000.
    planning_timeout_s: processor time for reading and planning one query (0 = no limit). INSERT DATA is not timed.
    planning_memory_mb: memory of a plan, as estimated while it is made (0 = no limit).
    """

    max_text_bytes: int = 16 << 20
    max_query_tokens: int = 150_000
    max_update_tokens: int = 1_000_000
    max_windows: int = 64
    max_nesting: int = MOST_NESTING
    max_plan_nodes: int = 50_000
    max_plan_depth: int = 1_000
    planning_timeout_s: float = 2.0
    planning_memory_mb: int = 512

    def __post_init__(self) -> None:
        """Refuse limits that the stack could not bear."""
        if not 1 <= self.max_nesting <= MOST_NESTING:
            raise ValueError(f"max_nesting must be between 1 and {MOST_NESTING}, not {self.max_nesting}")
        if not 1 <= self.max_plan_depth <= 1_000:
            raise ValueError(f"max_plan_depth must be between 1 and 1000, not {self.max_plan_depth}")


class Budget:
    """What is left for one text. `at` is the last place of the text that work was done for; `facts` remembers what
    planning found out about parts of the algebra, by identity.

    `accepted`: the text was accepted before, perhaps by another process. It is not timed, and its counts have slack.
    """

    __slots__ = ("_deadline", "_spent", "at", "bytes", "facts", "limits", "nodes", "slack", "text")

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
        self._deadline = None if accepted or timeout_s <= 0 else thread_time() + timeout_s

    def spend(self, at: int = -1, work: int = 1) -> None:
        """Note work done for the construct at an offset; LimitFault where the time is over."""
        if at >= 0:
            self.at = at
        self._spent += work
        if self._spent >= _LOOK_EVERY:
            self.look()

    def look(self) -> None:
        """Compare the clock with the limit; LimitFault where the time is over."""
        self._spent = 0
        if self._deadline is not None and thread_time() > self._deadline:
            self.exceeded("planning_timeout_s", f"the text takes more than {self.limits.planning_timeout_s:g} s")

    def defer(self, seconds: float) -> None:
        """Allow more time: so much went into work that is not the text's."""
        if self._deadline is not None:
            self._deadline += seconds

    def untimed(self) -> None:
        """Let the clock be: the text holds data."""
        self._deadline = None

    def charge(self, size: int, at: int = -1) -> None:
        """Note bytes that the plan keeps; LimitFault beyond the limit."""
        if at >= 0:
            self.at = at
        self.bytes += size
        most = self.limits.planning_memory_mb << 20
        if 0 < most * self.slack < self.bytes:
            self.exceeded("planning_memory_mb", f"the plan takes more than {self.limits.planning_memory_mb} MB")

    def add_node(self, depth: int, size: int) -> None:
        """Note one more operator of the plan, with the length of its longest way to a leaf, and its bytes."""
        self.nodes += 1
        limits = self.limits
        if self.nodes > limits.max_plan_nodes * self.slack:
            self.exceeded("max_plan_nodes", f"the plan has more than {limits.max_plan_nodes} operators")
        if depth > limits.max_plan_depth * self.slack:
            self.exceeded("max_plan_depth", f"the plan has more than {limits.max_plan_depth} steps in a row")
        self.charge(size)
        self.spend()

    def exceeded(self, name: str, message: str, at: int | None = None) -> None:
        """Raise the LimitFault for a limit."""
        raise LimitFault(f"{message} ({name}): split the query", self.at if at is None else at)


class planning:  # noqa: N801 - reads as a statement: with planning(limits, text)
    """The block in which one text is read, checked or planned. Inside another one, that one's budget goes on; so does
    `budget`, which is an earlier block's for the same text on the same thread.

    A Fault leaves the block as a QueryError; so do errors of a stack or memory that is too small, as a QueryLimitError.
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
    """The budget of the block that this thread is in."""
    return _current.get()


def spend(at: int = -1, work: int = 1) -> None:
    """Note work done for the construct at an offset, where there is a budget."""
    budget = _current.get()
    if budget is not None:
        budget.spend(at, work)


def charge(size: int, at: int = -1) -> None:
    """Note bytes that the plan keeps, where there is a budget."""
    budget = _current.get()
    if budget is not None:
        budget.charge(size, at)
