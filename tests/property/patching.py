"""Cases whose streams carry changes: events that are RDF Patches, beside updates that remove. No two streams absorb into
the same graph, because the order of their commits is not defined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from property.bodies import LINKS, VALUE
from property.cases import GRAPHS, Stream
from property.changing import ChangingMaker
from property.script import Case, Push, PushMany

if TYPE_CHECKING:
    from property.script import Operation

_TIMING = [(), (), (), (LINKS[0].value,), (LINKS[1].value, VALUE.value), "all"]


class PatchingMaker(ChangingMaker):
    """Makes the case of one number."""

    def stream(self, k: int) -> Stream:
        made = super().stream(k)
        made.timing = self.rng.choice(_TIMING)
        made.absorb_into = (None, *GRAPHS)[k]
        return made

    def step(self) -> None:
        if self.rng.random() < 0.45:
            stream = self.rng.choice(self.streams)
            self.operations.append(self.patches(stream))
        else:
            super().step()

    def removed(self, stream: Stream, spec: str) -> str:
        """Let some time windows contain what the stream has removed."""
        timed = not spec.startswith(("[TRIPLES", "[ELEMENTS"))
        return "REMOVED " if timed and not stream.derived and self.rng.random() < 0.35 else ""

    def patches(self, stream: Stream) -> Operation:
        rng, events = self.rng, []
        for _ in range(rng.choice([1, 1, 1, 3, 5])):
            stream.now = min(stream.now + rng.choice([0, 0, 1, 10, 40, 90]), self.base + self.profile.span_ms)
            time = stream.now - (rng.randint(0, 300) if rng.random() < 0.25 else 0)
            events.append((max(time, 1), self.patch(stream)))
        if len(events) > 1:
            return PushMany(stream.iri, tuple(events), "rdf-patch")
        return Push(stream.iri, *events[0], "rdf-patch")

    def patch(self, stream: Stream) -> str:
        rng = self.rng
        timing = stream.timing
        known = [] if timing == "all" else [line for line in self.known if line.split()[1].strip("<>") not in timing]
        added = [f"A {line}" for line in self.triples(rng.choice([1, 1, 2, 4])).split("\n")]
        if known and rng.random() < 0.4:
            added.append(f"A {rng.choice(known[-20:])}")
        removed = [
            f"D {rng.choice(known[-rng.choice([3, 30, 400]) :])}"
            for _ in range(rng.choice([0, 1, 1, 3]) if known else 0)
        ]
        rows = added * (rng.random() < 0.8) + removed
        rng.shuffle(rows)
        head, end = (["H id <urn:x> .", "TX ."], ["TC ."]) if rng.random() < 0.2 else ([], [])
        return "\n".join([*head, *rows, *end])


def make_patching(seed: int) -> Case:
    """Return another case of that number, with patches."""
    return PatchingMaker(seed).make()
