"""A case as a script: the operations on a system, in order. Operations are values, so scripts print, replay
and shrink.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import penstock
from support.meaning import Meaning, Tally

if TYPE_CHECKING:
    from support import patterns as P
    from support import updates


@dataclass(frozen=True)
class Declare:
    iri: str
    settings: tuple[tuple[str, Any], ...]

    def apply(self, system: Any, tally: Tally) -> None:
        system.declare(self.iri, **dict(self.settings))

    def __str__(self) -> str:
        return f"engine.declare_stream({self.iri!r}, {', '.join(f'{k}={v!r}' for k, v in self.settings)})"


@dataclass(frozen=True)
class Load:
    data: str
    graph: str | None

    def apply(self, system: Any, tally: Tally) -> None:
        system.load(self.data, self.graph)

    def __str__(self) -> str:
        return f"engine.load({self.data.encode()!r}, format='nt', graph={self.graph!r})"


@dataclass(frozen=True)
class Update:
    text: str
    operations: tuple[updates.Operation, ...] | None = None  # None: INSERT DATA, which the model parses

    def apply(self, system: Any, tally: Tally) -> None:
        system.update(self.text, self.operations)

    def __str__(self) -> str:
        return f"engine.update({self.text!r})"


@dataclass(frozen=True)
class Register:
    name: str
    text: str
    body: P.Body

    def apply(self, system: Any, tally: Tally) -> None:
        system.register(self.text, None, Meaning(self.body, tally))

    def __str__(self) -> str:
        return f"queries[{self.name!r}] = engine.register('''{self.text}''')"


@dataclass(frozen=True)
class Stop:
    name: str

    def apply(self, system: Any, tally: Tally) -> None:
        system.stop(self.name)

    def __str__(self) -> str:
        return f"queries[{self.name!r}].stop()"


@dataclass(frozen=True)
class Push:
    iri: str
    time: int
    data: str
    format: str = "nt"

    def apply(self, system: Any, tally: Tally) -> None:
        system.push(self.iri, self.time, self.data, self.format)

    def __str__(self) -> str:
        return f"engine.push({self.iri!r}, {self.data!r}, timestamp={self.time}, format={self.format!r})"


@dataclass(frozen=True)
class PushMany:
    """Several events at once: the same as one after the other."""

    iri: str
    events: tuple[tuple[int, str], ...]
    format: str = "nt"

    def apply(self, system: Any, tally: Tally) -> None:
        system.push_many(self.iri, list(self.events), self.format)

    def __str__(self) -> str:
        return f"engine.push_events({self.iri!r}, {list(self.events)!r}, {self.format!r})"


@dataclass(frozen=True)
class TooFarAhead:
    """An event beyond `max_ahead`: an error, and nothing else."""

    iri: str
    time: int
    data: str

    def apply(self, system: Any, tally: Tally) -> None:
        try:
            system.push(self.iri, self.time, self.data)
        except penstock.DataError:
            return
        assert system.kind == "oracle", "an event beyond max_ahead was accepted"

    def __str__(self) -> str:
        return f"engine.push({self.iri!r}, {self.data!r}, timestamp={self.time})  # DataError"


@dataclass(frozen=True)
class Advance:
    iri: str | None
    time: int

    def apply(self, system: Any, tally: Tally) -> None:
        system.advance(self.iri, self.time)

    def __str__(self) -> str:
        return f"engine.advance({self.iri!r}, {self.time})"


@dataclass(frozen=True)
class Ask:
    """A one-shot query; the only operation with a result of its own."""

    text: str
    body: P.Body
    ordered: bool = False

    def apply(self, system: Any, tally: Tally) -> Any:
        return system.ask(self.text, Meaning(self.body, tally), ordered=self.ordered)

    def __str__(self) -> str:
        return f"engine.query('''{self.text}''')"


@dataclass(frozen=True)
class Restart:
    crash: bool

    def apply(self, system: Any, tally: Tally) -> None:
        system.restart(crash=self.crash)

    def __str__(self) -> str:
        how = (
            "engine.checkpoint(); go on from a copy of data_dir"
            if self.crash
            else "engine.close(); open data_dir again"
        )
        return f"# {how}"


Operation = Declare | Load | Update | Register | Stop | Push | PushMany | TooFarAhead | Advance | Ask | Restart


@dataclass(frozen=True)
class Case:
    seed: int
    shards: int
    durable: bool
    operations: tuple[Operation, ...]

    def __str__(self) -> str:
        head = f"# case {self.seed}\nengine = penstock.Engine(shards={self.shards}{', data_dir=…' * self.durable})"
        return "\n".join([head, *map(str, self.operations)])
