"""The declaration of a stream (docs/semantics.md §1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias

from penstock.engine.limits import MAX_TIME_MS
from penstock.errors import DataError
from penstock.mapping.stream_mapping import StreamMapping, compiled
from penstock.rdf.terms import check_iri

Timing: TypeAlias = tuple[str, ...] | Literal["all"]


@dataclass(frozen=True, slots=True)
class Declaration:
    """A stream's declaration. Times are in milliseconds.

    `batch_ms`: the batch interval. `lateness_ms`: the allowed delay. An event is not late if the event's time is at
    most `lateness_ms` before the time of the latest event. `timing`: the predicates whose tuples are not stored. "all"
    stands for all predicates. `absorb_into`: the graph in which all other tuples are stored. None stands for the
    default graph.

    `retention_ms`: how long slices are retained even if no window needs them. If there are timing predicates, the
    retention is also the range of `[ALL]`. `idle_timeout_ms`: if the stream is idle for longer than this time, queries
    no longer wait for the stream. The next event of the stream can therefore be late. `max_ahead_ms`: an event is
    refused if the event's time is more than `max_ahead_ms` after the watermark and also more than `max_ahead_ms` after
    the wall-clock time.

    `graph_history`: whether queries that begin in the past of a cluster can read the stored graph as of each instant of
    the retention period (ADR 107). The embedded engine always permits this.

    `slice_mb`: the limit in MiB on the memory of the stream's open batches and live slices; None stands for no limit.
    `mapping`: how JSON or CSV messages become events (docs/how-to/map-json.md). Without a mapping (None), events are
    RDF.
    """

    iri: str
    batch_ms: int = 100
    lateness_ms: int = 0
    timing: Timing = ()
    absorb_into: str | None = None
    retention_ms: int = 0
    idle_timeout_ms: int = 10_000
    max_ahead_ms: int = 86_400_000
    slice_mb: int | None = None
    graph_history: bool = False
    mapping: dict[str, Any] | None = None

    @classmethod
    def checked(cls, iri: str, *, timing: Iterable[str] | str | None = None, **settings: Any) -> Declaration:
        """Return the declaration with these settings. DataError if a setting is invalid."""
        timing = () if timing is None else timing
        if isinstance(timing, str) and timing != "all":
            raise DataError(f'timing must be a list of predicates or "all", not {timing!r}')
        if not isinstance(timing, Iterable):
            raise DataError(f"timing must be a list of predicates, not {timing!r}")
        predicates: Timing = "all" if timing == "all" else tuple(sorted({check_iri(str(p)) for p in timing}))
        declaration = cls(check_iri(iri), timing=predicates, **settings)
        declaration._check()
        return declaration

    def _check(self) -> None:
        if self.absorb_into is not None:
            check_iri(self.absorb_into)
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value < MAX_TIME_MS:
                raise DataError(
                    f"{name} of <{self.iri}> must be an integer from {least} to {MAX_TIME_MS - 1}, not {value!r}"
                )
        slice_mb = self.slice_mb
        if slice_mb is not None and (not isinstance(slice_mb, int) or not 0 < slice_mb <= _MAX_SLICE_MB):
            raise DataError(f"slice_mb of <{self.iri}> must be a positive integer or None, not {slice_mb!r}")
        if not isinstance(self.graph_history, bool):
            raise DataError(f"graph_history of <{self.iri}> must be true or false, not {self.graph_history!r}")
        if self.graph_history and not self.retention_ms:
            raise DataError(f"graph_history of <{self.iri}> needs a retention: declare the stream with retention_ms")
        if self.mapping is not None:
            compiled(self.mapping)  # DataError if it is invalid

    @property
    def compiled_mapping(self) -> StreamMapping | None:
        """The compiled mapping, or None if the declaration has no mapping."""
        return None if self.mapping is None else compiled(self.mapping)

    def as_json(self) -> dict[str, Any]:
        """Return the declaration as a JSON object, for checkpoints and the write-ahead log."""
        return asdict(self)

    @classmethod
    def from_json(cls, saved: dict[str, Any]) -> Declaration:
        """Return the declaration from the JSON object `saved`, which `as_json` has returned."""
        timing = saved["timing"]
        return cls(**{**saved, "timing": timing if timing == "all" else tuple(timing)})


SETTINGS = tuple(field.name for field in fields(Declaration) if field.name != "iri")
"""The names of the settings of a declaration."""


def check_settings(settings: Mapping[str, object]) -> None:
    """Raise DataError if `settings` contains an unknown name."""
    if unknown := [name for name in settings if name not in SETTINGS]:
        raise DataError(f"unknown settings {', '.join(sorted(unknown))}: a stream has {', '.join(SETTINGS)}")


def warning_of(iri: str, settings: Mapping[str, object]) -> str | None:
    """Return the warning for a declaration without `timing`, or None if the declaration has `timing`."""
    if settings.get("timing") is not None:
        return None
    return (
        f"stream <{iri}> declares no timing: every tuple is stored for ever, and memory grows with each new one. "
        'Set timing="all" for readings that only windows need, timing=[predicates] for some, timing=[] to store all'
    )


def warnings_of(iri: str, settings: Mapping[str, object]) -> list[str]:
    """Return the warnings for a declaration, as a list of at most one text."""
    found = warning_of(iri, settings)
    return [] if found is None else [found]


_LEAST = {"batch_ms": 1, "lateness_ms": 0, "retention_ms": 0, "idle_timeout_ms": 0, "max_ahead_ms": 0}
_MAX_SLICE_MB = 1 << 40  # so that the number of bytes fits into 64 bits
