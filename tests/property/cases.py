"""Random cases: streams, stored data and queries over them, and a script that pushes, advances, asks and restarts."""

from __future__ import annotations

import dataclasses
import datetime
import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox

from property import profiles
from property.bodies import INTEGERS, LABEL, LABELS, LINKS, NODES, STRANGER, VALUE, BodyMaker, Places, X
from property.scoping import NAME, NAMES, SIZE, SIZES, ScopingMaker
from property.script import (
    Advance,
    Ask,
    Case,
    Declare,
    Load,
    Operation,
    Push,
    PushMany,
    Register,
    Restart,
    Stop,
    TooFarAhead,
    Update,
)
from support import patterns as P
from support.header import STORED
from support.printing import Printer

if TYPE_CHECKING:
    from property.profiles import Profile

GRAPHS = (X + "graph/a", X + "graph/b")
STRANGERS = [ox.NamedNode(f"{STRANGER}{k}") for k in range(1000)]


@dataclass
class Stream:
    iri: str
    batch_ms: int
    lateness_ms: int
    timing: Any
    absorb_into: str | None
    now: int
    derived: bool = False

    @property
    def absorbs(self) -> bool:
        return self.timing != "all"


@dataclass
class Clauses:
    """The dataset of one query, as text and as what patterns may address."""

    text: str
    places: Places
    streams: set[str]
    reads: set[str | None] = field(default_factory=set)
    counts: bool = False
    step: int = 0


class CaseMaker:
    """Makes the case of one number."""

    def __init__(self, seed: int, profile: Profile | None = None) -> None:
        self.seed, self.rng = seed, random.Random(seed)
        self.profile = profile or profiles.of(seed)
        self.base = self.rng.choice([0, 0, 730, 100_000, 1_700_000_000_000])
        self.blank_nodes = self.rng.random() < 0.25
        self.durable = self.rng.random() < 0.3
        self.operations: list[Operation] = []
        self.names = 0
        self.streams = [self.stream(k) for k in range(self.rng.choice([1, 2, 2, 3]))]
        self.registered: list[str] = []
        self.ambiguous_together = False

    def make(self) -> Case:
        rng = self.rng
        for s in self.streams:
            settings = {"batch_ms": s.batch_ms, "lateness_ms": s.lateness_ms, "timing": s.timing}
            self.operations.append(Declare(s.iri, (*settings.items(), ("absorb_into", s.absorb_into))))
        self.operations.append(Load(self.triples(rng.randint(*self.profile.stored_triples), stored=True), None))
        for graph in GRAPHS:
            self.operations.append(Load(self.triples(rng.randint(1, 8), stored=True), graph))
        waiting = [r for _ in range(rng.choice(self.profile.queries)) for r in self.queries()]
        first = rng.randint(1, len(waiting))
        self.operations += waiting[:first]
        later = waiting[first:]
        self.registered = [r.name for r in waiting[:first]]
        for _ in range(rng.randint(*self.profile.actions)):
            self.step()
            if later and rng.random() < (0.15 if len(later) < 5 else 0.9):
                self.registered.append(later[0].name)
                self.operations.append(later.pop(0))
        for s in self.streams:
            self.operations.append(Advance(s.iri, self.base + self.profile.span_ms))
        return Case(self.seed, rng.choice([1, 3]), self.durable, tuple(self.operations))

    # ---- streams
    def stream(self, k: int) -> Stream:
        rng = self.rng
        timing = rng.choice([(), (), (LINKS[0].value,), (LINKS[1].value, VALUE.value), "all"])
        absorb = rng.choice([None, None, *GRAPHS])
        batch = rng.choice(self.profile.batches_ms)
        return Stream(f"{X}stream/{k}", batch, rng.choice([0, 0, 0, 40, 300]), timing, absorb, self.base)

    def step(self) -> None:
        rng = self.rng
        stream = rng.choice(self.streams)
        kind = rng.random()
        stream.now = min(stream.now + rng.choice(self.profile.pauses_ms), self.base + self.profile.span_ms)
        if kind < 0.12:
            self.operations.append(self.push_many(stream))
        elif kind < 0.75:
            time = stream.now - (rng.randint(0, 400) if rng.random() < 0.2 else 0)
            self.operations.append(Push(stream.iri, max(time, 1), self.triples(rng.choice(self.profile.event_triples))))
        elif kind < 0.86:
            self.advance(stream)
        elif kind < 0.9:
            self.operations.append(self.update())
        elif kind < 0.94:
            self.operations.append(self.ask())
        elif kind < 0.955 and len(self.registered) > 1 and not self.consumers():
            self.operations.append(Stop(self.registered.pop()))
        elif kind < 0.965:
            ahead = int(datetime.datetime(2100, 1, 1, tzinfo=datetime.UTC).timestamp() * 1000)
            self.operations.append(TooFarAhead(stream.iri, ahead, self.triples(1)))
        elif self.durable:
            self.operations.append(Restart(rng.random() < 0.4))

    def push_many(self, stream: Stream) -> PushMany:
        rng, events = self.rng, []
        for _ in range(rng.randint(1, 6)):
            stream.now = min(stream.now + rng.choice([0, 1, 10, 40, 90]), self.base + self.profile.span_ms)
            time = stream.now - (rng.randint(0, 300) if rng.random() < 0.2 else 0)
            events.append((max(time, 1), self.triples(rng.choice(self.profile.event_triples))))
        return PushMany(stream.iri, tuple(events))

    def advance(self, stream: Stream) -> None:
        if self.rng.random() < 0.3 and not self.ambiguous_together:
            for s in self.streams:
                s.now = max(s.now, stream.now)
            self.operations.append(Advance(None, stream.now))
        else:
            self.operations.append(Advance(stream.iri, stream.now))

    # ---- data
    def triples(self, count: int, *, stored: bool = False) -> str:
        lines = [f"{self.triple(stored)} ." for _ in range(count)]
        return "\n".join({line.lower(): line for line in lines}.values())  # tags in another case are the same triple

    def triple(self, stored: bool) -> str:
        rng = self.rng
        blank = self.blank_nodes and rng.random() < 0.15
        subject: Any = ox.BlankNode("b") if blank and rng.random() < 0.5 else self.node()
        if self.profile.scoping and rng.random() < 0.2:
            return (
                f"{subject} {SIZE} {rng.choice(SIZES)}"
                if rng.random() < 0.6
                else f"{subject} {NAME} {rng.choice(NAMES)}"
            )
        kind = rng.random()
        if kind < 0.66:
            target: Any = ox.BlankNode(rng.choice("bc")) if blank else self.node()
            return f"{subject} {rng.choice(LINKS)} {target}"
        if kind < 0.92:
            return f"{subject} {VALUE} {rng.choice(INTEGERS)}"
        return f"{subject} {LABEL} {rng.choice(LABELS)}"

    def node(self) -> ox.NamedNode:
        """One of the few nodes that queries name, or a stranger; of strangers, the first are the commonest."""
        rng, strangers = self.rng, self.profile.strangers
        if not strangers or rng.random() < 0.25:
            return rng.choice(NODES)
        return STRANGERS[int(strangers * rng.random() ** 2)]

    def update(self) -> Update:
        data = self.triples(self.rng.randint(1, 2))
        graph = self.rng.choice([None, *GRAPHS])
        return Update(f"INSERT DATA {{ {data if graph is None else f'GRAPH <{graph}> {{ {data} }}'} }}")

    def ask(self) -> Ask:
        rng, named, clauses = self.rng, list(GRAPHS), ""
        if rng.random() < 0.35:
            named = rng.sample([*GRAPHS, STORED], rng.randint(0, 2))
            merged = rng.sample([*GRAPHS, STORED], rng.randint(0 if named else 1, 2))
            clauses = " ".join([*(f"FROM <{g}>" for g in merged), *(f"FROM NAMED <{g}>" for g in named)])
        places = Places(tuple(named), (), variable=True)
        maker = self.maker(rng, places, blank_nodes=self.blank_nodes, **self._style())
        body = rng.choice([maker.select, maker.select, maker.ask, maker.construct])()
        head, rest = Printer().head(body)
        return Ask(f"{head} {clauses} {rest}", body, isinstance(body, P.Select) and bool(body.order))

    @property
    def maker(self) -> type[BodyMaker]:
        return ScopingMaker if self.profile.scoping else BodyMaker

    def _style(self) -> dict[str, bool]:
        return {"connected": self.profile.connected, "computes": self.profile.computes}

    # ---- queries
    def queries(self) -> list[Register]:
        """One query, or a few that differ only in constants, or a derived stream and its reader."""
        rng = self.rng
        if rng.random() < self.profile.derived_share:
            return self.derived()
        clauses = self.clauses()
        made = [self.query(clauses)]
        if rng.random() < self.profile.sibling_share:
            made += [self.sibling(made[0]) for _ in range(rng.randint(*self.profile.siblings))]
        return made

    def query(self, clauses: Clauses) -> Register:
        rng = self.rng
        maker = self.maker(rng, clauses.places, blank_nodes=self.blank_nodes, **self._style())
        operator = rng.choice(["QUERY", "QUERY", "RSTREAM", "ISTREAM", "DSTREAM"])
        plain = operator in ("QUERY", "RSTREAM")
        kind = rng.random()
        body: P.Body
        if kind < 0.1 and plain:
            body = maker.ask()
        elif kind < 0.28:
            body = maker.construct()
        else:
            body = maker.select(sorted_allowed=plain)
        self.record_reads(clauses)
        return self.registration(operator, clauses, body)

    def registration(self, operator: str, clauses: Clauses, body: P.Body, iri: str | None = None) -> Register:
        rng = self.rng
        self.names += 1
        name = iri or f"q{self.names}"
        options = ""
        if not clauses.counts and iri is None and rng.random() < 0.1:
            options += f" COMPUTED EVERY {rng.choice([170, 300, 450])}ms"
        if rng.random() < 0.2:
            options += f" REPORT {rng.choice(['NONEMPTY', 'EVERY'])}"
        if not clauses.counts and iri is None and rng.random() < 0.12:
            options += f" STARTING AT {self.base + rng.randint(0, 900)}"
        head, rest = Printer().head(body)
        text = f"REGISTER {operator} {f'<{iri}>' if iri else name}{options} AS {head} {clauses.text} {rest}"
        return Register(name, text, body)

    def sibling(self, made: Register) -> Register:
        """The same template with other constants."""
        self.names += 1
        body = _with_constants(made.body, self.rng)
        (head, rest), (old_head, old_rest) = Printer().head(body), Printer().head(made.body)
        text = made.text.replace(old_rest, rest).replace(f"AS {old_head} ", f"AS {head} ")
        text = text.replace(f" {made.name}", f" q{self.names}", 1)
        return Register(f"q{self.names}", text, body)

    def derived(self) -> list[Register]:
        rng = self.rng
        clauses = self.clauses(equal_steps=True)
        maker = self.maker(rng, clauses.places, blank_nodes=self.blank_nodes, **self._style())
        self.record_reads(clauses)
        iri = f"{X}stream/derived{self.names}"
        producer = self.registration(rng.choice(["STREAM", "ISTREAM"]), clauses, maker.construct(), iri)
        step = clauses.step
        stream = Stream(iri, step, 0, "all", None, 0, derived=True)
        reader = self.clauses(of=[stream] if rng.random() < 0.6 else [stream, rng.choice(self.streams)])
        self.record_reads(reader, {s.iri for s in self.streams})
        operator = rng.choice(["QUERY", "ISTREAM"])
        maker = self.maker(rng, reader.places, blank_nodes=self.blank_nodes, **self._style())
        body = maker.select(sorted_allowed=operator == "QUERY")
        return [producer, self.registration(operator, reader, body)]

    def consumers(self) -> bool:
        return any(isinstance(op, Register) and "/derived" in op.text for op in self.operations)

    def record_reads(self, clauses: Clauses, upstream: set[str] | None = None) -> None:
        """Remember whether advancing all streams at once could be told from advancing them one by one."""
        for s in self.streams:
            if s.absorbs and s.absorb_into in clauses.reads and s.iri not in clauses.streams:
                self.ambiguous_together = True

    def clauses(self, *, equal_steps: bool = False, of: list[Stream] | None = None) -> Clauses:
        rng = self.rng
        streams = of or rng.sample(self.streams, rng.randint(1, min(2, len(self.streams))))
        counts = not equal_steps and of is None and rng.random() < 0.15
        steps = [rng.choice(self.profile.steps_ms) for _ in range(6)]
        if equal_steps:
            steps = [steps[0]] * 6
        lines, windows, by_graph, graphs, in_default = [], [], [], [], False
        for k, s in enumerate(streams):
            spec = self.window(s, steps[k], counts=counts, plain=equal_steps)
            form = rng.choice(["FROM", "FROM", "NAMED", "WINDOW"])
            if form == "WINDOW":
                for w in range(rng.choice([1, 1, 2])):
                    name = f"{X}window/{k}{w}"
                    lines.append(f"{self.removed(s, spec)}FROM NAMED WINDOW <{name}> ON <{s.iri}> {spec}")
                    windows.append(name)
                    spec = self.window(s, steps[k + 2 * (w + 1) - 1], counts=counts, plain=equal_steps)
            else:
                lines.append(
                    f"{self.removed(s, spec)}FROM {'NAMED ' if form == 'NAMED' else ''}STREAM <{s.iri}> {spec}"
                )
                graphs.append(s.iri)
                in_default |= form == "FROM"
                by_graph += [s.iri] * (form == "NAMED")
        found = self.stored_clauses(lines, graphs, in_default=in_default, derived=bool(of))
        places = Places(tuple(dict.fromkeys(graphs)), tuple(windows), variable=bool(by_graph) or found[1])
        return Clauses(" ".join(lines), places, {s.iri for s in streams}, found[0], counts, steps[0])

    def removed(self, stream: Stream, spec: str) -> str:
        """Return what stands before FROM: here nothing, because these streams remove nothing."""
        del stream, spec
        return ""

    def stored_clauses(
        self, lines: list[str], graphs: list[str], *, in_default: bool, derived: bool
    ) -> tuple[set[str | None], bool]:
        """Add FROM, FROM NAMED and bare GRAPH for stored graphs; returns what is read and whether GRAPH ?g
        has a range.
        """
        rng, reads, named = self.rng, set[str | None](), False
        if derived and any(s.absorbs for s in self.streams):
            # What streams absorb that the reader does not name depends on how far they are, which nothing fixes here.
            if not in_default:
                lines.append(f"FROM <{X}graph/quiet>")
                self.quiet()
            return reads, named
        for iri, graph in ((STORED, None), *((g, g) for g in GRAPHS)):
            kind = rng.random()
            if kind < 0.22:
                lines.append(f"FROM <{iri}>")
                in_default = True
            elif kind < 0.36:
                lines.append(f"FROM NAMED <{iri}>")
                named = True
            elif kind < 0.46 and iri != STORED:
                pass  # addressed by GRAPH without a clause
            else:
                continue
            graphs.append(iri)
            reads.add(graph)
        if not in_default:
            reads.add(None)
        return reads, named

    def quiet(self) -> None:
        graph = f"{X}graph/quiet"
        if not any(isinstance(op, Load) and op.graph == graph for op in self.operations):
            self.operations.append(Load(self.triples(5, stored=True), graph))

    def window(self, stream: Stream, step: int, *, counts: bool, plain: bool) -> str:
        rng = self.rng
        if counts:
            size = rng.choice(self.profile.counts)
            form = rng.choice(["TRIPLES", "ELEMENTS"])
            return (
                f"[{form} {size}]" if rng.random() < 0.3 else f"[{form} {size} STEP {rng.choice(self.profile.counts)}]"
            )
        if not plain and rng.random() < 0.07:
            return "[NOW]"
        if not plain and stream.timing == () and not stream.derived and rng.random() < 0.05:
            return f"[ALL STEP {step}ms]"
        if not plain and rng.random() < 0.1:
            return f"[RANGE {step}ms TUMBLING]"
        length = rng.choice([step, 2 * step, 3 * step, max(step // 2, 1), *self.profile.ranges_ms])
        return f"[RANGE {length}ms {rng.choice(['STEP', 'SLIDE'])} {step}ms]"


def _with_constants(value: Any, rng: random.Random) -> Any:
    """Replace vertex and literal constants at random, leaving everything that belongs to the template."""
    if isinstance(value, ox.NamedNode):
        return rng.choice(NODES) if value in NODES else value
    if isinstance(value, ox.Literal):
        return rng.choice(INTEGERS) if value in INTEGERS else rng.choice(LABELS) if value in LABELS else value
    if isinstance(value, tuple):
        return tuple(_with_constants(item, rng) for item in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {f.name: _with_constants(getattr(value, f.name), rng) for f in dataclasses.fields(value)}
        return type(value)(**changed)
    return value


def make(seed: int, profile: Profile | None = None) -> Case:
    return CaseMaker(seed, profile).make()


def make_computing(seed: int) -> Case:
    """Return another case of that number, whose queries compute terms and join with them."""
    profile = profiles.of(seed)
    return make(seed, dataclasses.replace(profile, computes=True, strangers=profile.strangers or 8))


def make_scoping(seed: int) -> Case:
    """Return another case of that number, whose queries hang on scopes and values (property/scoping.py)."""
    return make(seed, dataclasses.replace(profiles.of(seed), scoping=True))
