"""An engine whose dictionary is split, as in a cluster (ADR 37), with the interface of the embedded engine.

Pushed and loaded terms have ids of a complete dictionary, the "service". The engine knows a term only after it has
asked for it, forgets between operations all terms that it may forget, and makes private ids for computed terms.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import penstock
from penstock.core import _native as native
from penstock.engine.engine_core import EngineCore
from penstock.engine.intake.events import EventParser
from penstock.engine.intake.graph_loading import Document
from penstock.engine.limits import Limits
from penstock.engine.oneshot.one_shot import OneShot
from penstock.engine.oneshot.updating import data_change
from penstock.engine.runtime import Runtime
from penstock.engine.standing.evaluator import Evaluator
from penstock.query.parser import parse
from penstock.query.resolve import as_update
from penstock.term_ids.cluster_terms import OWN_BLANKS, ClusterCore, TermCache, one_shot_core
from penstock.term_ids.reencoding import to_cluster
from support.systems import EngineSystem

if TYPE_CHECKING:
    from penstock.engine.answers.result_blocks import Block
    from penstock.engine.standing.groups import Cohort


class Service:
    """The cluster's dictionary; counts the requests."""

    def __init__(self) -> None:
        self.terms = native.Dictionary()
        self.decoded = self.found = 0

    def encode(self, terms: Any) -> Any:
        return self.terms.intern_many(terms)

    def find(self, terms: Any) -> Any:
        self.found += len(terms)
        return self.terms.find_many(terms)

    def decode(self, ids: Any) -> Any:
        self.decoded += len(ids)
        self.terms.check(ids)
        return native.LocalTerms(self.terms).decode(ids)


class _Publishing(Evaluator):
    """Publishes a query's answers with the cluster's ids, as an outlet does."""

    service: Service

    def evaluate(self, cohort: Cohort, time: int) -> Block:
        block = super().evaluate(cohort, time)
        if cohort.group.publishes is None or not block.columns:
            return block
        columns = to_cluster(self._core.dictionary, block.columns, self.service, OWN_BLANKS)
        return replace(block, columns=tuple(columns))


class SplitSystem(EngineSystem):
    """`seed` decides when the cache is emptied."""

    kind = "split engine"

    def __init__(self, seed: int, *, shards: int = 1) -> None:
        super().__init__(shards=shards)
        self.service = Service()
        self._rng = random.Random(seed)
        engine, whole = self.engine, self.engine._runtime.core
        limits = Limits(cached_terms_mb=self._rng.choice([0, 512]))
        dictionary = native.Dictionary()
        terms = TermCache(dictionary, self.service)
        core = ClusterCore(whole.store, dictionary, limits, whole.clock, whole.random, whole.foreign, terms=terms)
        engine._runtime = runtime = Runtime(core)
        runtime.evaluator.__class__ = _Publishing
        runtime.evaluator.service = self.service
        engine._one_shot = OneShot(one_shot_core(core), runtime.streams, engine._texts)
        engine._parser = EventParser(self.service.terms, limits.max_event_bytes)
        self._whole = EngineCore(whole.store, self.service.terms, limits, whole.clock, whole.random, whole.foreign)

    def _open(self) -> Any:
        return penstock.Engine(shards=self.shards)

    def _forget(self) -> None:
        if self._rng.random() < 0.5:
            self.engine._runtime.forgetting.evict(self._rng.choice([0, 0, 5]))

    def load(self, data: str, graph: str | None = None) -> None:
        Document.read(self._whole, data.encode(), graph, "nt", None).commit(self._whole)
        self._forget()

    def update(self, text: str, operations: Any = None) -> None:
        del operations
        data_change(self._whole.dictionary, as_update(parse(text))).commit(self._whole)

    def push(self, iri: str, time: int, data: str, syntax: str = "nt") -> None:
        super().push(iri, time, data, syntax)
        self._forget()

    def push_many(self, iri: str, events: list[tuple[int, str]], syntax: str = "nt") -> None:
        super().push_many(iri, events, syntax)
        self._forget()

    def advance(self, iri: str | None, time: int) -> None:
        super().advance(iri, time)
        self._forget()

    def ask(self, text: str, meaning: Any = None, *, ordered: bool = False) -> Any:
        self._forget()
        return super().ask(text, meaning, ordered=ordered)
