"""Figures of a cohort's last execution, for EXPLAIN. Each execution overwrites the earlier figures in place, so it
allocates no memory for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import _native as native

if TYPE_CHECKING:
    from penstock.engine.oneshot.engine_catalogue import Planned


class LastRun:
    """Figures of the last execution (run) of a plan. `failed` is the number of members without an answer. The rows of
    these members are not counted.

    The native core fills `profiles`: one profile for the plan, or one per factor (ADR 47). `product` is the number of
    rows of the factors' cross product, or None. A run is split if members exceed a limit (ADR 6). In this case, `parts`
    contains the profiles and products of the run's parts.
    """

    __slots__ = ("failed", "parts", "planned", "product", "profiles", "time", "timed")

    def __init__(self, planned: Planned) -> None:
        self.planned = planned
        self.profiles = profiles_of(planned)
        self.product: int | None = None
        self.parts: list[tuple[list[native.Profile], int | None]] | None = None
        self.failed = 0
        self.time: int | None = None
        self.timed = True

    def begin(self, time: int) -> None:
        """Prepare for the run at instant `time`. If `timed` is set, the operators of this run measure times. The call
        then clears `timed`.
        """
        self.time, self.parts = time, None
        if self.timed:
            self.timed = False
            for profile in self.profiles:
                profile.timed = True

    @property
    def reused(self) -> bool:
        """Whether the run has executed no operator. This is the case if all look-ups have returned the same rows as in
        the previous run (ADR 48).
        """
        return self.parts is None and all(profile.reused for profile in self.profiles)

    @property
    def timed_at(self) -> int | None:
        """The instant of the last timed run in ms, or None."""
        return self.profiles[0].timed_at_ms

    def rows(self) -> dict[int, int]:
        """Return the number of rows by node id. If the run was split, each number is the sum over the parts."""
        parts = self.parts if self.parts is not None else [(self.profiles, self.product)]
        total: dict[int, int] = {}
        for profiles, product in parts:
            for node, rows in self._rows_of(profiles, product).items():
                total[node] = total.get(node, 0) + rows
        return total

    def nanos(self) -> dict[int, int]:
        """Return, by node id, the time in ns that the operator used in the last timed run. The time of the operator's
        inputs is not included.
        """
        return {node: nanos for profile in self.profiles for node, nanos in profile.nanos().items()}

    def maintenance(self) -> dict[int | None, str]:
        """Return, by node id, how operators were evaluated. The result contains only the operators that can update
        their state from changes (ADR 78). The stream operator has the id `None`. The result is empty if no operator
        ran, or if the run was split.
        """
        if self.parts is not None:
            return {}
        return {
            node: _streamed(reason, changed) if node is None else _evaluated(reason, changed, held)
            for profile in self.profiles
            for node, reason, changed, held in profile.maintained()
        }

    def _rows_of(self, profiles: list[native.Profile], product: int | None) -> dict[int, int]:
        rows = {node: rows for profile in profiles for node, rows in profile.rows().items()}
        if product is not None:
            rows[self.planned.physical.spec["root"]["id"]] = product
        return rows


def _evaluated(reason: str | None, changed: int, state_bytes: int) -> str:
    how = f"updated from {changed} changed rows" if reason is None else f"evaluated completely: {reason}"
    return f"{how}, state {state_bytes} bytes" if state_bytes else how


def _streamed(reason: str | None, changed: int) -> str:
    return f"from {changed} changed rows" if reason is None else f"from complete answers: {reason}"


def profiles_of(planned: Planned) -> list[native.Profile]:
    """Return empty profiles for a compiled plan: one profile for the plan, or one per factor."""
    return [native.Profile() for _ in planned.factors or (planned.native,)]
