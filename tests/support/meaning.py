"""The answer of a body over one dataset, by two independent evaluators; a third is asked if they differ."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from support import evaluator
from support.answers import Answer, Rows, difference
from support.printing import Printer
from support.references import by_pyoxigraph, by_rdflib

if TYPE_CHECKING:
    from support import patterns as P
    from support.evaluator import Data


@dataclass
class Tally:
    """How often the references were asked, and each answer of the small evaluator that neither rdflib nor pyoxigraph
    gave.
    """

    evaluations: int = 0
    third_asked: int = 0
    too_large: int = 0
    disputed: list[str] = field(default_factory=list)


@dataclass
class Meaning:
    """The small evaluator's answer, confirmed by one of the two reference engines."""

    body: P.Body
    tally: Tally
    references: tuple[Any, Any] = (by_pyoxigraph, by_rdflib)
    _texts: dict[tuple[str, ...], str] = field(default_factory=dict)

    def __call__(self, data: Data, time: int) -> Answer:
        if data.names not in self._texts:
            self._texts[data.names] = Printer(data.names).body(self.body)
        text = self._texts[data.names]
        own = evaluator.evaluate(self.body, data)
        self.tally.evaluations += 1
        if not self._agrees(self.references[0], text, own, data):
            self.tally.third_asked += 1
            if not self._agrees(self.references[1], text, own, data):
                self.tally.disputed.append(f"{text}\n{self._explain(text, own, data)}")
        return own

    def _agrees(self, reference: Any, text: str, own: Answer, data: Data) -> bool:
        return self._differs(reference, text, own, data) is None

    def _differs(self, reference: Any, text: str, own: Answer, data: Data) -> str | None:
        ordered = isinstance(own, Rows) and own.ordered
        try:
            return difference(own, reference(text, data, ordered=ordered))
        except Exception as error:  # noqa: BLE001  a reference that fails does not agree
            return repr(error)

    def _explain(self, text: str, own: Answer, data: Data) -> str:
        lines = [f"default: {sorted(map(_triple, data.default.triples))}"]
        lines += [f"{g}: {sorted(map(_triple, c.triples))}" for g, c in data.graphs.items()]
        lines += [f"{r.__name__}: {self._differs(r, text, own, data)}" for r in self.references]
        return "\n".join(lines)


def _triple(triple: Any) -> str:
    return " ".join(map(str, triple))
