"""Replacement of queries in a cluster of processes on a real broker, while query engines and coordinators are killed.

Each text answers under the name of its query. An answer tells its text by the names of its variables. The embedded engine
replaces the texts at the same instants, and must give the same answers.
"""

from __future__ import annotations

import json
import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("confluent_kafka")

import penstock
from penstock.cli.cluster.demo_cluster import content
from penstock.client import Client
from penstock.engine.answers.json_lines import json_line
from penstock.event_time.grid import closed_until
from penstock.log import TransientError
from support.cluster_load import BEGIN, IRI, Load, Producing, small
from support.held_rows import result_format

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Future

    from penstock.cli.cluster.local_cluster import LocalCluster

pytestmark = pytest.mark.xdist_group("broker")
BATCH_MS = 100
WINDOWS = (
    "[RANGE 1s STEP 500ms]",
    "[RANGE 700ms STEP 500ms]",
    "[RANGE 2s STEP 1000ms]",  # wider than what the windows before have kept
    "[RANGE 500ms STEP 250ms]",
    "[RANGE 1s STEP 500ms]",
    "[RANGE 1500ms STEP 500ms]",
)
"""The windows of each version of the texts."""
FORMS = {
    "busy": ("QUERY", "?s (COUNT(*) AS ?n{})", "?s <http://x/p> ?v", "GROUP BY ?s"),
    "fresh": ("ISTREAM", "?s ?v{}", "?s <http://x/p> ?v{}", ""),
    "held": ("QUERY", "?s ?t{}", "?s <http://x/says> ?t{}", ""),
}
STEP = re.compile(r"STEP (\d+)ms")
CHANGING = ("held",)  # registered with `changes`
Answers = dict[tuple[str, int], str]


def text(name: str, version: int) -> str:
    kind, variables, pattern, rest = FORMS[name]
    select = f"SELECT {variables.format(version)} FROM STREAM <{IRI}> {WINDOWS[version]}"
    return f"REGISTER {kind} {name} AS {select} WHERE {{ {pattern.format(version)} }} {rest}"


def version_of(answer: str) -> int:
    """The version of the text that has given an answer."""
    return int(json.loads(answer)["head"]["vars"][1][1:])


class Replacing:
    """Replaces all queries of a cluster, again and again, and kills processes at about the same time."""

    def __init__(self, load: Load, cluster: LocalCluster, client: Client, seed: int) -> None:
        self.load, self.cluster, self.client = load, cluster, client
        self.rng = random.Random(seed)
        self.killed: list[str] = []

    def register(self, version: int) -> None:
        for name in FORMS:
            given = text(name, version)
            options: Any = {"changes": name in CHANGING, "result_format": result_format(given)}
            self.load.wait(lambda: self.sent(given, name, options), f"a coordinator that replaces {name}")  # noqa: B023

    def sent(self, given: str, name: str, options: Any) -> bool:
        """Whether a coordinator has answered. A registration that is repeated has no effect."""
        try:
            self.client.register(given, name, replace=True, **options)
        except TransientError:  # both coordinators have been killed
            return False
        return True

    def kill(self, service: str, count: int) -> None:
        names = sorted(name for name in self.cluster.services if name.startswith(service))
        for name in self.rng.sample(names, count):
            self.cluster.kill(name)
            self.killed.append(name)

    def replace(self, version: int) -> None:
        """Register a version. Engines are killed before, meanwhile or after; coordinators meanwhile."""
        engines, moment = 1 + version % 2, version % 3
        if moment == 0:
            self.kill("engine", engines)
        with ThreadPoolExecutor(1) as pool:
            registered = pool.submit(self.register, version)
            time.sleep(self.rng.uniform(0.0, 0.1))
            self.kill("coordinator", engines)
            if moment == 1:
                self.kill("engine", engines)
            self.wait(registered)
        if moment == 2:
            self.kill("engine", engines)
        self.cluster.watch()

    def wait(self, registered: Future[None]) -> None:
        def done() -> bool:
            self.cluster.watch()
            return registered.done()

        self.load.wait(done, "the replacement")
        registered.result()


def replacements(got: Answers) -> list[tuple[int, str, int]]:
    """Return until when the earlier text answers, the query and the version of each replacement, in order. The last
    batch at which the answers allow it.
    """
    found, last = [], dict.fromkeys(FORMS, (0, 0))
    for (name, at), answer in sorted(got.items()):
        version, (before, earlier) = version_of(answer), last[name]
        if version != before:
            next_of_earlier = earlier + int(STEP.findall(WINDOWS[before])[0])
            found.append((closed_until(min(at, next_of_earlier) - 1, BATCH_MS), name, version))
        last[name] = version, at
    return sorted(found)


def expected(load: Load, end_ms: int, replaced: list[tuple[int, str, int]]) -> Answers:
    """Return the answers of an embedded engine that replaces the same texts at the same instants."""
    found: Answers = {}
    with penstock.Engine() as engine:
        engine.declare_stream(IRI, batch_ms=BATCH_MS, **load.settings)
        handles = {name: engine.register(text(name, 0), name) for name in FORMS}
        engine.advance(IRI, BEGIN)
        rest = iter([*load.sent, (end_ms + 1, b"")])
        event = next(rest)
        for at, name, version in [*replaced, (end_ms, "", 0)]:
            while event[0] <= at:
                engine.push_events(IRI, [event])
                event = next(rest)
            engine.advance(IRI, at)
            if name:
                engine.register(text(name, version), name, replace=True)
        for name, query in handles.items():
            for evaluation in query.poll():
                found[name, evaluation.time] = content(json.loads(json_line(evaluation)))
    return found


def run(servers: str, prefix: str, directory: Any, seed: int, between: Callable[[random.Random], int]) -> None:
    """Replace each query by each of its versions. `between`: how many events come before the next replacement."""
    load = Load(servers, prefix, queries={name: text(name, 0) for name in FORMS}, changing=CHANGING)
    load.settings = {**load.settings, "retention_ms": 0}
    with (
        small(servers, prefix, directory, engines=2, coordinators=2) as cluster,
        Client(servers, cluster.url, cluster.sparql_url, prefix=prefix) as client,
    ):
        load.prepare(client)
        replacing = Replacing(load, cluster, client, seed)
        with Producing(load) as producing:
            for version in range(1, len(WINDOWS)):
                producing.wait_for(len(load.sent) + between(replacing.rng))
                replacing.replace(version)
            producing.wait_for(len(load.sent) + between(replacing.rng))
        end_ms = load.end()
        got, counts = load.results(cluster, lambda got: all((name, end_ms) in got for name in FORMS))
    replaced = replacements(got)
    answers = expected(load, end_ms, replaced)
    print(f"seed {seed}: {len(answers)} answers, {len(replaced)} replacements, killed {replacing.killed}")
    order = [(name, version) for _, name, version in replaced]
    assert sorted(order) == [(name, version) for name in sorted(FORMS) for version in range(1, len(WINDOWS))]
    assert set(counts.values()) == {1}, "doubled"
    assert sorted(got) == sorted(answers), "lost or not due"
    for place in sorted(answers):
        assert got[place] == answers[place], place


def test_queries_are_replaced_while_engines_and_coordinators_are_killed(broker, topic_prefix, tmp_path):
    run(broker.bootstrap_servers, topic_prefix, tmp_path, 1, lambda rng: rng.randrange(150, 300))


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("seed", range(2, 12))
def test_queries_are_replaced_while_engines_and_coordinators_are_killed_often(broker, topic_prefix, tmp_path, seed):
    run(broker.bootstrap_servers, topic_prefix, tmp_path, seed, lambda rng: rng.randrange(150, 600))
