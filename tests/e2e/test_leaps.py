"""Leaps of event time on a real cluster: queries over other streams go on, and a query that catches up can be stopped
(ADR 57).

Each test measures the longest silence of the live streams' queries while nothing leaps, and compares the silence during
leaps with it: both contain what else the machine does.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass
from threading import Event, Thread
from typing import TYPE_CHECKING, Self
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

import pytest

pytest.importorskip("confluent_kafka")

from penstock.client import Client
from penstock.log import Record, Topic
from penstock.log.kafka import KafkaLog
from penstock.log.topics import TopicNames
from support.cluster_load import small
from support.silences import Arrivals

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.event_time.gaps import Gap

pytestmark = pytest.mark.xdist_group("broker")
LIVE = ("a", "b")
LIVE_QUERIES = [f"q{stream}" for stream in LIVE]
READ = "REGISTER QUERY {} AS SELECT ?s ?v FROM STREAM <http://x/{}> [RANGE 1s STEP {}ms] WHERE {{ ?s <http://x/p> ?v }}"
STEP_MS = 100  # of every query
CALM_S, LEAP_S, BOUND_S = 8.0, 7.0, 120.0
GOES_ON_S, SLOWER = 1.0, 3
"""Longest silence of a query over another stream during a leap: in s, or as a multiple of the silence without leaps."""
IDLE_MS, NEVER_IDLE_MS = 4_000, 3_600_000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Traffic:
    """Events of the live streams by wall clock, and when results arrive."""

    def __init__(self, bootstrap_servers: str, prefix: str) -> None:
        self.queries = LIVE_QUERIES
        self.names, self.log = TopicNames(prefix), KafkaLog(bootstrap_servers)
        self.log.create([Topic(self.names.events(stream), 1) for stream in LIVE])
        self._writer, self._over = self.log.writer(), Event()
        self._thread = Thread(target=self._run)

    def write(self, stream: str, time_ms: int, partition: int = 0) -> None:
        self._writer.append([self._event(stream, time_ms, partition)])

    def _event(self, stream: str, time_ms: int, partition: int = 0) -> Record:
        data = b'<http://x/%d> <http://x/p> "%d" .' % (time_ms % 5, time_ms)
        return Record(self.names.events(stream), data, None, partition, (("timestamp", b"%d" % time_ms),))

    def _run(self) -> None:
        writer = self.log.writer()
        while not self._over.wait(0.05):
            at = now_ms()
            writer.append([self._event(stream, at) for stream in LIVE])
        writer.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._writer.close()
        self.log.close()


def wait(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {BOUND_S} s: {what}"
        time.sleep(0.1)


def calm_silence(arrivals: Arrivals) -> float:
    """Return the longest silence of the live streams' queries while nothing leaps, s."""
    wait(lambda: all(len(arrivals.moments[query]) > 20 for query in LIVE_QUERIES), "answers of live streams")
    began = time.monotonic()
    time.sleep(CALM_S)
    return arrivals.silence(began, time.monotonic(), 0.0)


# ---- leaps
@dataclass(frozen=True)
class Leap:
    """One way in which a stream's time leaps.

    `gap`: whether it skips instants; `late`: whether it makes an event late; `partitions`: of the stream's topic.
    """

    play: Callable[[Traffic, str, random.Random], None]
    gap: bool = False
    late: bool = False
    partitions: int = 1
    idle_timeout_ms: int = NEVER_IDLE_MS


def forward(traffic: Traffic, stream: str, rng: random.Random) -> None:
    """An old event, and then those of now."""
    traffic.write(stream, rng.randint(1_000, 10**11))
    time.sleep(0.5)
    follow(traffic, stream)


def backward(traffic: Traffic, stream: str, rng: random.Random) -> None:
    """Events of now, one of long ago, and again those of now."""
    follow(traffic, stream, seconds=1.0)
    traffic.write(stream, now_ms() - rng.randint(10_000, 10**10))
    follow(traffic, stream)


def seconds_first(traffic: Traffic, stream: str, _: random.Random) -> None:
    """The stream's first event has seconds in place of milliseconds."""
    traffic.write(stream, now_ms() // 1000)
    time.sleep(0.5)
    follow(traffic, stream)


def seconds_later(traffic: Traffic, stream: str, _: random.Random) -> None:
    """A later event has seconds in place of milliseconds."""
    follow(traffic, stream, seconds=1.0)
    traffic.write(stream, now_ms() // 1000)
    follow(traffic, stream)


def seconds_after_idle(traffic: Traffic, stream: str, rng: random.Random) -> None:
    """As `seconds_first`, once the idle stream has been advanced to the watermark of the live ones."""
    time.sleep(2 * IDLE_MS / 1_000)
    seconds_first(traffic, stream, rng)


def one_partition(traffic: Traffic, stream: str, rng: random.Random) -> None:
    """One of two partitions stays behind, and holds the stream back until its idle timeout."""
    traffic.write(stream, rng.randint(1_000, 10**11), 0)
    time.sleep(0.5)
    follow(traffic, stream, 1)


def many_instants(traffic: Traffic, stream: str, rng: random.Random) -> None:
    """No leap by the rule, but tens of thousands of instants are due at once."""
    traffic.write(stream, now_ms() - STEP_MS * rng.randint(20_000, 900_000))
    time.sleep(0.5)
    follow(traffic, stream)


def follow(traffic: Traffic, stream: str, partition: int = 0, seconds: float = LEAP_S) -> None:
    """Events of now."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        traffic.write(stream, now_ms(), partition)
        time.sleep(0.1)


KINDS = {
    "forward": Leap(forward, gap=True),
    "backward": Leap(backward, late=True),
    "seconds first": Leap(seconds_first, gap=True),
    "seconds later": Leap(seconds_later, late=True),
    "seconds after idle": Leap(seconds_after_idle, late=True, idle_timeout_ms=IDLE_MS),
    "one partition of two": Leap(one_partition, gap=True, partitions=2, idle_timeout_ms=IDLE_MS),
    "many instants": Leap(many_instants),
}


class Leaping:
    """One leap of one stream, and what comes of it. `silence_s`: of the live streams' queries; `stop_s`: of DELETE."""

    def __init__(self, traffic: Traffic, arrivals: Arrivals, client: Client, number: int, kind: str) -> None:
        self.kind, self.leap = kind, KINDS[kind]
        self.stream, self.query = f"n{number}", f"qn{number}"
        self.silence_s = self.stop_s = 0.0
        self.gaps: list[Gap] = []
        self._traffic, self._arrivals, self._client = traffic, arrivals, client
        traffic.log.create([Topic(traffic.names.events(self.stream), self.leap.partitions)])

    def __str__(self) -> str:
        gap = f"gap of {self.gaps[0].count} instants" if self.gaps else "no gap"
        return f"{self.kind}: silence {self.silence_s:.2f} s, DELETE {self.stop_s:.2f} s, {gap}"

    def play(self, rng: random.Random) -> None:
        """Declare the stream only now: after its idle timeout it begins at the watermark of the others, and an older event
        is late and skips nothing (docs/semantics.md §2).
        """
        iri, client = f"http://x/{self.stream}", self._client
        client.declare_stream(iri, self.stream, timing="all", idle_timeout_ms=self.leap.idle_timeout_ms)
        query = client.register(READ.format(self.query, self.stream, STEP_MS))
        began = time.monotonic()
        self.leap.play(self._traffic, self.stream, rng)
        self.silence_s = self._arrivals.silence(began, time.monotonic(), 0.0)
        wait(lambda: bool(self._arrivals.moments[self.query]), f"an answer after a leap: {self.kind}")
        if self.leap.gap:
            wait(lambda: bool(query.gaps), f"a gap: {self.kind}")
        if self.leap.late:
            wait(lambda: bool(client.late(iri)), f"a late event: {self.kind}")
        self.gaps = query.gaps
        asked = time.monotonic()
        client.stop(self.query)
        time.sleep(2.0)
        self.stop_s = max(0.0, self._arrivals.moments[self.query][-1] - asked)
        wait(lambda: self._drop(iri), "the drop of the stream")

    def _drop(self, iri: str) -> bool:
        self._client.drop_stream(iri)
        return True


def play(broker, topic_prefix, tmp_path, kinds: list[str], seed: int) -> None:
    """Let streams leap one after the other: queries over other streams go on."""
    rng = random.Random(seed)
    with (
        Traffic(broker.bootstrap_servers, topic_prefix) as traffic,
        small(broker.bootstrap_servers, topic_prefix, tmp_path, engines=2, stores=2) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
        Arrivals(traffic) as arrivals,
    ):
        for stream in LIVE:
            client.declare_stream(f"http://x/{stream}", stream, timing="all")
            client.register(READ.format(f"q{stream}", stream, STEP_MS))
        leaps = [Leaping(traffic, arrivals, client, number, kind) for number, kind in enumerate(kinds)]
        calm_s = calm_silence(arrivals)
        print(f"\nlongest silence without leaps: {calm_s:.2f} s")
        for leap in leaps:
            leap.play(rng)
            print(leap)
    assert [bool(leap.gaps) for leap in leaps] == [leap.leap.gap for leap in leaps]
    assert not [str(leap) for leap in leaps if leap.silence_s > max(GOES_ON_S, SLOWER * calm_s)]
    assert not [str(leap) for leap in leaps if leap.stop_s > max(GOES_ON_S, SLOWER * calm_s)]


def test_queries_of_other_streams_go_on_while_streams_leap(broker, topic_prefix, tmp_path):
    play(broker, topic_prefix, tmp_path, ["seconds first", "one partition of two", "backward"], seed=1)


@pytest.mark.long
@pytest.mark.timeout(0)
def test_queries_of_other_streams_go_on_through_ten_random_leaps(broker, topic_prefix, tmp_path):
    rng = random.Random(57)
    kinds = [*KINDS, *rng.choices(list(KINDS), k=10 - len(KINDS))]
    rng.shuffle(kinds)
    play(broker, topic_prefix, tmp_path, kinds, seed=57)


# ---- a query that catches up
class Liveness:
    """Answers of the services' /health/live, ten times per second."""

    def __init__(self, urls: list[str]) -> None:
        self.bad: list[str] = []
        self.asked, self._urls, self._over = 0, urls, Event()
        self._thread = Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.wait(0.1):
            for url in self._urls:
                self.asked += 1
                try:
                    with urlopen(f"{url}/health/live", timeout=10):
                        pass
                except HTTPError as error:
                    self.bad.append(f"{url}: {error.code}")
                except (URLError, TimeoutError) as error:
                    self.bad.append(f"{url}: {error}")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def test_a_query_that_catches_up_is_stopped_within_a_second_and_every_service_stays_live(
    broker, topic_prefix, tmp_path
):
    """An old event and then one of now, with a `max_catch_up` that lets the query catch up with 900 million instants."""
    with (
        Traffic(broker.bootstrap_servers, topic_prefix) as traffic,
        small(broker.bootstrap_servers, topic_prefix, tmp_path, engines=1, stores=1) as cluster,
        Client(broker.bootstrap_servers, cluster.url, cluster.sparql_url, prefix=topic_prefix) as client,
        Arrivals(traffic) as arrivals,
    ):
        for stream in LIVE:
            client.declare_stream(f"http://x/{stream}", stream, timing="all")
            client.register(READ.format(f"q{stream}", stream, STEP_MS))
        calm_s = calm_silence(arrivals)
        client.declare_stream("http://x/posts", "posts", timing="all", idle_timeout_ms=NEVER_IDLE_MS)
        client.register(READ.format("n", "posts", 1_000), max_catch_up=10**9)
        usual = client.register(READ.format("m", "posts", 1_000))
        began = time.monotonic()
        traffic.write("posts", now_ms() - 1_000 * 900_000_000)
        with Liveness([cluster.url, cluster.sparql_url]) as liveness:
            traffic.write("posts", now_ms())
            wait(lambda: len(arrivals.moments["n"]) > 1_000, "a query that catches up")
            wait(lambda: bool(usual.gaps), "a gap of the query with the usual bound")
            asked = time.monotonic()
            client.stop("n")
            took_s = time.monotonic() - asked
            time.sleep(3.0)
        last_s = max(0.0, arrivals.moments["n"][-1] - asked)
        silence_s = arrivals.silence(began, time.monotonic(), 0.0)
        print(f"\nDELETE took {took_s:.2f} s; last answer {last_s:.2f} s after it; {liveness.asked} liveness requests")
        print(f"longest silence of live streams {silence_s:.2f} s, {calm_s:.2f} s without the leap")
        assert "n" not in client.queries
    assert liveness.asked > 20
    assert liveness.bad == []
    assert last_s <= max(GOES_ON_S, SLOWER * calm_s)
    assert silence_s <= max(GOES_ON_S, SLOWER * calm_s)
