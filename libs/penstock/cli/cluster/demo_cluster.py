"""`penstock demo-cluster`: replays a recorded day of Aarhus through Kafka and a cluster. Meanwhile it kills processes
of the cluster.

At the end it compares every record of the results topic with the embedded engine's answer. Each (query, t) must occur
once, with the same answer.
"""

from __future__ import annotations

import heapq
import json
import re
import secrets
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

from penstock.broker import Broker
from penstock.cli.cluster.kills import schedule
from penstock.cli.cluster.local_cluster import AdaptorKind, LocalCluster
from penstock.cli.local.demo import BASE, MORNING, examples
from penstock.cli.local.recording import Recording
from penstock.client import Client
from penstock.engine import Engine
from penstock.engine.answers.json_lines import json_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from penstock.cli.cluster.kills import Kill

_STREAMS = ("traffic", "parking")
_SETTINGS: dict[str, Any] = {"batch_ms": 60_000, "timing": "all", "max_ahead_ms": 1 << 52, "idle_timeout_ms": 3_600_000}
# give up after this time without a result: brokers detect a failed group member only after its session timeout
_PATIENCE_S = 180.0
_QUIET_S = 3.0  # wait after the last expected result, to detect duplicates
_BLANK = re.compile(r'"bnode", "value": "[^"]*"|_:\w+')

Key = tuple[str, int]
Event = tuple[int, str, bytes]


@dataclass(slots=True)
class Verdict:
    """The comparison of the actual results with the expected results."""

    expected: dict[Key, str]
    counts: Counter[Key] = field(default_factory=Counter)
    different: set[Key] = field(default_factory=set)
    killed: Counter[str] = field(default_factory=Counter)
    seed: int | None = None  # of the kill schedule

    def take(self, line: dict[str, Any]) -> None:
        """Count a result line. If the line is not the expected result, add its query and time to `different`."""
        key = line["query"], line["time"]
        self.counts[key] += 1
        if self.expected.get(key) != content(line):
            self.different.add(key)

    @property
    def complete(self) -> bool:
        """Whether all expected results have arrived."""
        return self.expected.keys() <= self.counts.keys()

    @property
    def good(self) -> bool:
        """Whether no result is lost, duplicated or different."""
        return self.complete and not self.different and max(self.counts.values(), default=0) <= 1

    def __str__(self) -> str:
        killed = ", ".join(f"{name} {n} x" for name, n in sorted(self.killed.items())) or "nothing"
        if self.seed is not None:
            killed += f" (seed {self.seed})"
        lost = len(self.expected.keys() - self.counts.keys())
        doubled = sum(n - 1 for n in self.counts.values())
        return (
            f"killed: {killed}. {len(self.expected)} evaluations: {lost} lost, {doubled} doubled, "
            f"{len(self.different)} different."
        )


def content(line: dict[str, Any]) -> str:
    """Return the compared parts of a result line. Snapshot, attempt, row order and blank node labels are not
    compared.
    """
    found = {name: value for name, value in line.items() if name not in ("snapshot", "attempt")}
    if "results" in found:
        found["results"] = sorted(json.dumps(row, sort_keys=True) for row in found["results"]["bindings"])
    return _BLANK.sub("_:b", json.dumps(found, sort_keys=True))


def events(until_ms: int) -> Iterator[Event]:
    """Yield (time, stream name, N-Triples) for the recorded day, in time order."""
    folder = examples()
    recorded = (
        ((t, name, data) for t, data in Recording(name, str(folder / f"{name}.stream")).events()) for name in _STREAMS
    )
    for time_ms, name, data in heapq.merge(*recorded):
        if MORNING < time_ms <= until_ms:
            yield time_ms, name, data


def texts() -> dict[str, str]:
    """Return the example queries by name. One query publishes a stream, and another query reads this stream."""
    return {path.stem: path.read_text(encoding="utf-8") for path in sorted((examples() / "queries").glob("*.rq"))}


def embedded(until_ms: int) -> dict[Key, str]:
    """Return the content of each evaluation of the embedded engine over the same events."""
    found: dict[Key, str] = {}
    with Engine() as engine:
        engine.load(examples() / "city.ttl")
        for name in _STREAMS:
            engine.declare_stream(BASE + name, **_SETTINGS)
        queries = [engine.register(text, name=name) for name, text in texts().items()]
        engine.advance(None, MORNING)
        for time_ms, name, data in events(until_ms):
            engine.push(BASE + name, data, timestamp=time_ms)
        engine.advance(None, until_ms)
        for query in queries:
            for evaluation in query.poll():
                found[query.name, evaluation.time] = content(json.loads(json_line(evaluation)))
    return found


def demo_cluster(
    *,
    hours: float = 12.0,
    kills: int = 6,
    seed: int | None = None,
    victims: Sequence[str] | None = None,
    directory: Path | None = None,
    adaptor: AdaptorKind = AdaptorKind.plain,
) -> Verdict:
    """Replay `hours` of the day while killing `kills` processes. Returns the verdict.

    `seed` determines which of the `victims` are killed, and when. The seed does not determine what a process is doing
    at that time. `seed` None: a random seed. `victims` None: all processes.
    """
    console = Console(highlight=False)
    until_ms = MORNING + int(hours * 3_600_000)
    seed = secrets.randbelow(1 << 32) if seed is None else seed
    verdict = Verdict(embedded(until_ms), seed=seed)
    console.print(f"embedded engine: {len(verdict.expected)} evaluations of {len(texts())} queries, {hours:g} hours")
    with (
        tempfile.TemporaryDirectory(prefix="penstock-demo-", dir=directory) as folder,
        Broker(Path(folder, "broker")) as broker,
        LocalCluster(broker.bootstrap_servers, Path(folder, "cluster"), adaptor=adaptor) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url) as client,
    ):
        console.print(f"cluster: {', '.join(cluster.services)}; broker at {broker.bootstrap_servers}")
        _prepare(client)
        every = list(events(until_ms))
        planned = schedule(seed, victims or list(cluster.services), len(every), kills)
        console.print(f"{len(planned)} kills among {len(every)} events, seed {seed}")
        _replay(client, cluster, verdict, every, planned, console)
        for name in _STREAMS:
            client.advance(name, until_ms)
        _collect(client, cluster, verdict)
    console.print(str(verdict))
    return verdict


def _prepare(client: Client) -> None:
    client.load(examples() / "city.ttl")
    for name in _STREAMS:
        client.declare_stream(BASE + name, name, **_SETTINGS)
    for name, text in texts().items():
        client.register(text, name)
    for name in _STREAMS:
        client.advance(name, MORNING)


def _replay(
    client: Client,
    cluster: LocalCluster,
    verdict: Verdict,
    every: Sequence[Event],
    planned: Iterable[Kill],
    console: Console,
) -> None:
    """Produce the events. Meanwhile processes are killed, and the supervisor restarts them."""
    due = iter(planned)
    following = next(due, None)
    for i, (time_ms, name, data) in enumerate(every, 1):
        client.push(name, data, time_ms)
        if following is not None and following.event == i:
            time.sleep(following.before_s)
            cluster.kill(following.victim)
            verdict.killed[following.victim] += 1
            console.print(f"killed {following.victim} after {i} events")
            time.sleep(following.dead_s)
            cluster.watch()
            following = next(due, None)


def _collect(client: Client, cluster: LocalCluster, verdict: Verdict) -> None:
    """Read the results until all have arrived. Then read for another `_QUIET_S` seconds, to detect duplicates."""
    last = time.monotonic()
    for answered in client.watch():
        if answered is not None:
            last = time.monotonic()
            verdict.take(dict(answered.line))
            continue
        cluster.watch()
        if time.monotonic() - last > (_QUIET_S if verdict.complete else _PATIENCE_S):
            return
