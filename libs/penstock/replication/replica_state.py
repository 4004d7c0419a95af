"""The part of a checkpoint that stores and query engines have in common: log positions, streams and registrations."""

from __future__ import annotations

from dataclasses import asdict, astuple, dataclass
from typing import TYPE_CHECKING, Any

from penstock.engine.intake.declaration import Declaration
from penstock.errors import StorageError
from penstock.event_time.gaps import Gap
from penstock.replication.registration import Registration
from penstock.wire import QueryRegistration

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from penstock.replication.replica import Replica, W

Saved = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """A replica's state at a step. `of` copies everything that can change. Another thread can therefore run
    `as_json`.
    """

    fields: Saved
    streams: list[tuple[Declaration, Saved]]
    registrations: list[Saved]
    extra: Saved

    @classmethod
    def of(
        cls,
        replica: Replica[W],
        version: int,
        extra: Mapping[str, Any],
        of_stream: Callable[[Any], Saved],
    ) -> ReplicaState:
        """Copy the current state. `extra`: the state machine's own fields. `of_stream` returns the state machine's own
        fields of one stream.
        """
        fields = {
            "version": version,
            "positions": list(replica.sequencer.positions()),
            "commands": replica.commands,
            "insertions": replica.insertions,
            "declared": dict(replica.declared),
            "ended": dict(replica.ended),
            "begun": dict(replica.begun),
            "step": replica.history.step,
            "history": replica.history.save(),
            "next_stream": replica.runtime.streams.next_number,
        }
        streams = [
            (
                stream.declaration,
                {
                    "number": stream.number,
                    "closed_ms": stream.closed_ms,
                    "publisher": stream.publisher,
                    **of_stream(stream),
                },
            )
            for stream in replica.runtime.streams
        ]
        registrations = [
            {name: getattr(registration, name) for name in Registration.__slots__}
            for registration in replica.registrations.values()
        ]
        return cls(fields, streams, registrations, dict(extra))

    def as_json(self) -> Saved:
        """Return the state as JSON-compatible values."""
        streams = [{"declaration": declaration.as_json(), **saved} for declaration, saved in self.streams]
        registrations = [
            {**saved, "record": asdict(saved["record"]), "gaps": [astuple(gap) for gap in saved["gaps"]]}
            for saved in self.registrations
        ]
        return {**self.fields, **self.extra, "streams": streams, "registrations": registrations}


def check(state: Saved, version: int, partitions: int, path: Path) -> None:
    """Check that a checkpoint has the given format version and number of partitions. StorageError if not."""
    if state.get("version") != version or len(state.get("positions", ())) != partitions:
        raise StorageError(f"{path}: it has another format version, or another number of partitions")


def restore(
    replica: Replica[W],
    state: Saved,
    path: Path,
    restore_state_machine: Callable[[], None],
    add_stream: Callable[[Declaration, Saved], Any],
) -> Sequence[int]:
    """Restore a saved state into an empty replica. Returns the offset at which to resume in each partition.

    `restore_state_machine` restores the state machine's own fields; then `add_stream` creates each stream. StorageError
    if the state is corrupt; the message names `path`.
    """
    try:
        restore_state_machine()
        for saved in state["streams"]:
            stream = add_stream(Declaration.from_json(saved["declaration"]), saved)
            stream.closed_ms, stream.publisher = saved["closed_ms"], saved["publisher"]
            stream.ended = stream.iri in state["ended"]
        replica.runtime.streams.next_number = state["next_stream"]
        replica.history.restore(state["history"], state["step"])
        replica.declared, replica.ended = state["declared"], state["ended"]
        replica.begun = {iri: (step, point) for iri, (step, point) in state["begun"].items()}
        replica.commands, replica.insertions = state["commands"], state["insertions"]
        for saved in state["registrations"]:
            lists = {name: tuple(saved["record"][name]) for name in ("streams", "steps", "windows", "key")}
            record = QueryRegistration(**{**saved["record"], **lists})
            gaps = tuple(Gap(*gap) for gap in saved["gaps"])
            replica.record_registration(Registration(**{**saved, "record": record, "gaps": gaps}))
        positions: Sequence[int] = state["positions"]
        replica.sequencer.resume(positions)
    except (KeyError, IndexError, TypeError, ValueError, OSError) as error:
        raise StorageError(f"{path}: corrupt: {error!r}") from error
    else:
        return positions
