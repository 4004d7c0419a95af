"""What the last run of a cohort did, for EXPLAIN: recorded in place, without an allocation per run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.core import _native as native

if TYPE_CHECKING:
    from penstock.engine.oneshot.engine_catalogue import Planned


class LastRun:
    """Figures of a plan's last run. `failed`: number of members without an answer, whose rows are not counted.

    The native core fills one profile per native plan: one, or one per factor (ADR 47). `product` is the number of rows
    of the factors' product. If the run was split to find the members that exceed a limit (ADR 6), `parts` replaces
    `profiles` and `product`.
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
        """Prepare for the run at an instant. Its operators measure times if `timed` is set, which this call clears."""
        self.time, self.parts = time, None
        if self.timed:
            self.timed = False
            for profile in self.profiles:
                profile.timed = True

    @property
    def reused(self) -> bool:
        """Whether no operator ran, because all look-ups returned the same rows as before (ADR 48)."""
        return self.parts is None and all(profile.reused for profile in self.profiles)

    @property
    def timed_at(self) -> int | None:
        """The instant of the last timed run."""
        return self.profiles[0].timed_at_ms

    def rows(self) -> dict[int, int]:
        """Return the rows by node id, summed over the parts of a run that was split."""
        parts = self.parts if self.parts is not None else [(self.profiles, self.product)]
        total: dict[int, int] = {}
        for profiles, product in parts:
            for node, rows in self._rows_of(profiles, product).items():
                total[node] = total.get(node, 0) + rows
        return total

    def nanos(self) -> dict[int, int]:
        """Return the own time by node id, ns, in the last timed run."""
        return {node: nanos for profile in self.profiles for node, nanos in profile.nanos().items()}

    def _rows_of(self, profiles: list[native.Profile], product: int | None) -> dict[int, int]:
        rows = {node: rows for profile in profiles for node, rows in profile.rows().items()}
        if product is not None:
            rows[self.planned.physical.spec["root"]["id"]] = product
        return rows


def profiles_of(planned: Planned) -> list[native.Profile]:
    """Return an empty profile for each native plan of a compiled plan."""
    return [native.Profile() for _ in planned.factors or (planned.native,)]
