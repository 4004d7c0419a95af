"""Event time over several partitions, restarts at any moment, idle streams (SEMANTICS §2)."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.ingest.dispatcher import Dispatcher
from penstock.ingest.refused import DeadLetter, LateEvent
from penstock.ingest.stream_time import StreamTime
from penstock.log import START, MemoryLog, Partition, Record, Topic, TransientError
from penstock.log.clock import VirtualClock
from penstock.log.faults import NoFaults, Point
from penstock.log.topics import TopicNames
from penstock.wire import ShardBatch, StreamDeclaration, Tuples, encode
from support.records import record_of

if TYPE_CHECKING:
    from collections.abc import Iterable

NAMES = TopicNames()
IRI = "http://x/s"
SHARDS = 3
GROUP = "adaptor"


class CrashError(Exception):
    pass


class CrashesAt(NoFaults):
    """Dies at the n-th transaction of the dispatcher, before or after it took effect."""

    def __init__(self) -> None:
        self.left: int | None = None
        self.point = Point.COMMIT

    def at(self, point: Point, owner: str) -> None:
        if point is self.point and owner.endswith("dispatcher") and self.left is not None:
            self.left -= 1
            if self.left < 0:
                self.left = None
                raise CrashError


def declaration(iri: str = IRI, name: str = "s", number: int = 1, **settings: int) -> StreamDeclaration:
    kept = {"batch_ms": 100, "lateness_ms": 0, "idle_timeout_ms": 10_000, "max_ahead_ms": 100_000, **settings}
    return StreamDeclaration(
        number,
        iri,
        name,
        kept["batch_ms"],
        kept["lateness_ms"],
        True,
        (),
        0,
        kept["idle_timeout_ms"],
        kept["max_ahead_ms"],
    )


class World:
    """A log with events and tuples of one-triple events; the adaptor is played by the test."""

    def __init__(self, partitions: int = 1) -> None:
        self.clock = VirtualClock(1_000_000)
        self.faults = CrashesAt()
        self.log = MemoryLog(self.clock, self.faults)
        self.log.create([Topic(NAMES.shards, SHARDS)])
        self.log.create([Topic(t, 1, "compact") for t in (NAMES.control, NAMES.dispatcher)])
        self.log.create([Topic(t) for t in (NAMES.late, NAMES.dead_letter)])
        self.partitions = partitions
        self.writer = self.log.writer()
        self.reader = self.log.join(GROUP, [])

    def declare(self, *declarations: StreamDeclaration) -> None:
        for each in declarations:
            topics = [NAMES.events(each.name), NAMES.tuples(each.name)]
            self.log.create([Topic(name, self.partitions) for name in topics])
            self.writer.append([Record(NAMES.control, encode(each), f"stream:{each.iri}".encode())])

    def produce(self, times: Iterable[int], partition: int = 0, name: str = "s", iri: str = IRI) -> None:
        """Events in the events topic, and each as a record of tuples."""
        source = Partition(NAMES.events(name), partition)
        for time in times:
            offset = self.log.spans([source])[source].end
            self.writer.append([Record(source.topic, b"event at %d" % time, None, partition)])
            self.adapt(partition, [offset], [time], name, iri)
        self.log.group(GROUP).progress[source] = self.log.spans([source])[source].end

    def adapt(
        self,
        partition: int,
        offsets: list[int],
        times: list[int],
        name: str = "s",
        iri: str = IRI,
        advance: int | None = None,
    ) -> None:
        ids = np.array(offsets, np.uint64) + np.uint64(1 + 1000 * partition)
        record = Tuples(
            iri,
            partition,
            np.array(offsets, np.int64),
            np.array(times, np.int64),
            np.ones(len(times), np.int64),
            ids,
            ids,
            ids,
            advance,
        )
        self.writer.append([Record(NAMES.tuples(name), encode(record), None, partition)])

    def dispatcher(self) -> Dispatcher:
        return Dispatcher(self.log, NAMES, SHARDS, self.clock, GROUP)

    def read(self, topic: str, partition: int = 0) -> list:
        messages = self.log.reader({Partition(topic, partition): START}).poll(100_000)
        return [record_of(m) for m in messages]

    def batches(self, iri: str = IRI) -> list[ShardBatch]:
        return [b for b in self.read(NAMES.shards) if b.stream == iri]

    def content(self, iri: str = IRI, declared: int | None = None) -> dict[int, list[int]]:
        """Times of each batch's tuples over all shards, in order of arrival; checks what must hold of every log."""
        found: dict[int, list[tuple[int, int]]] = {}
        numbers = []
        for shard in range(SHARDS):
            last = None
            own = []
            for batch in self.read(NAMES.shards, shard):
                if batch.stream != iri or declared not in (None, batch.declared):
                    continue
                assert last is None or batch.first == last + 1, "a batch is missing or doubled"
                last = batch.last
                own.append((batch.first, batch.last, batch.begin_ms))
                held = found.setdefault(batch.last, [])
                held += zip(batch.positions.tolist(), batch.times.tolist(), strict=True)
                assert all(batch.last * 100 < t <= (batch.last + 1) * 100 for t in batch.times.tolist())
            numbers.append(own)
        assert all(own == numbers[0] for own in numbers), "every closed batch goes to every shard"
        return {k: [t for _, t in sorted(held)] for k, held in found.items() if held}


def test_a_batch_closes_when_the_watermark_passes_its_end():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1010, 1020, 1099, 1100])
    dispatcher.step()
    assert world.content() == {}
    world.produce([1101])
    dispatcher.step()
    assert world.content() == {10: [1010, 1020, 1099, 1100]}
    assert world.batches()[0].begin_ms == 1000


def test_runs_of_empty_batches_are_one_record():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 9_050, 9_150])
    dispatcher.step()
    assert [(b.first, b.last) for b in world.batches()] == [(10, 10), (11, 90)]
    assert world.content() == {10: [1050], 90: [9_050]}


def test_late_events_go_out_with_their_bytes_and_change_nothing():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 1040, 1250])
    dispatcher.step()
    [late] = world.read(NAMES.late)
    assert isinstance(late, LateEvent)
    assert (late.time_ms, late.offset, late.data) == (1040, 1, b"event at 1040")
    assert late.watermark_ms >= 1040
    assert world.content() == {10: [1050]}


def test_a_late_event_is_told_the_watermark_that_it_met_not_that_of_its_record():
    world = World()
    world.declare(declaration())
    for time in (1_250, 1_060, 5_000):
        world.writer.append([Record(NAMES.events("s"), b"event at %d" % time)])
    world.adapt(0, [0, 1, 2], [1_250, 1_060, 5_000])
    world.dispatcher().step()
    [late] = world.read(NAMES.late)
    assert (late.time_ms, late.watermark_ms) == (1_060, 1_249)


def test_one_bad_clock_closes_no_window():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1_000_050, 5_000_000, 1_000_150])
    dispatcher.step()
    [letter] = world.read(NAMES.dead_letter)
    assert isinstance(letter, DeadLetter)
    assert (letter.time_ms, letter.data, letter.stream) == (5_000_000, b"event at 5000000", IRI)
    assert world.content() == {10_000: [1_000_050]}


def test_the_watermark_is_the_least_of_the_partitions():
    world = World(2)
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 2050], 0)
    dispatcher.step()
    assert world.batches() == [], "the other partition may still have earlier events"
    world.produce([1020, 1130], 1)
    dispatcher.step()
    assert sorted(world.content()[10]) == [1020, 1050]
    assert world.read(NAMES.late) == []


def test_a_silent_partition_is_left_out_until_it_speaks():
    world = World(2)
    world.declare(declaration(idle_timeout_ms=1000))
    dispatcher = world.dispatcher()
    world.produce([1050, 2050], 0)
    dispatcher.step()
    world.clock.advance(1001)
    world.produce([2060], 0)
    dispatcher.step()
    assert world.content() == {10: [1050]}
    world.produce([2070], 1)
    world.produce([5000], 0)
    dispatcher.step()
    dispatcher.step()
    assert list(world.content()) == [10], "it speaks again, so it is waited for"


def test_a_stream_may_gain_partitions_which_are_waited_for_then():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 1150])
    dispatcher.step()
    for topic in (NAMES.events("s"), NAMES.tuples("s")):
        world.log.grow(topic, 2)
    world.clock.advance(5_001)
    dispatcher.step()
    world.produce([1250])
    dispatcher.step()
    assert world.content() == {10: [1050]}, "the new partition may have earlier events"
    world.produce([1160, 1300], 1)
    world.produce([1310])
    dispatcher.step()
    dispatcher.close()
    world.dispatcher().step()
    assert world.content() == {10: [1050], 11: [1150, 1160]}, "a restart knows it too"
    assert world.read(NAMES.late) == []


def test_a_restart_waits_for_partitions_that_brokers_do_not_tell_of_yet():
    """One that has just come back may know fewer than there are: what was taken of the others would be taken again."""
    world = World(2)
    world.declare(declaration())
    dispatcher = world.dispatcher()
    dispatcher.step()
    world.produce([1050, 1150])
    world.produce([1060, 1170], 1)
    dispatcher.step()
    dispatcher.close()
    ask = world.log.topics
    world.log.topics = lambda: ask() | {NAMES.tuples("s"): 1}
    younger = world.dispatcher()
    younger.step()
    assert younger.streams == {}
    world.log.topics = ask
    younger.step()
    world.produce([1250])
    world.produce([1270], 1)
    world.clock.advance(5_001)
    younger.step()
    younger.step()
    assert world.content() == {10: [1050, 1060], 11: [1150, 1170]}
    assert world.read(NAMES.late) == []


def test_a_partition_that_is_gained_takes_nothing_that_was_cut_by_less_than_was_said_to_come():
    """An adaptor that was held up may find it after all others have come to a later version (ADR 45)."""
    stream = StreamTime(declaration(), 1, 0)
    stream.take(0, _cut(0, 2), 0, 0)
    assert stream.known == 2
    stream.grow(2, 0)
    assert stream.known == 2
    stream.take(1, _cut(1, 1), 0, 0)
    assert (stream.tallies.outdated, stream.tallies.events) == (1, 1)
    restarted = StreamTime(declaration(), 3, 0)
    state = stream.state()
    restarted.restore(state)
    restarted.replayed(state)
    assert [part.wanted for part in restarted.partitions] == [2, 2, 2]


def test_what_was_read_is_taken_where_brokers_could_not_be_asked_in_the_middle_of_it():
    """A record that was cut by a later version has it asked for partitions that nobody has counted yet."""
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    dispatcher.step()
    world.produce([1050])
    world.writer.append([Record(NAMES.tuples("s"), encode(_cut(0, 2, offset=1)), None, 0)])
    world.adapt(0, [2], [1080])
    ask = world.log.topics

    def away() -> dict[str, int]:
        world.log.topics = ask
        raise TransientError("the brokers do not answer")

    world.log.topics = away
    with pytest.raises(TransientError):
        dispatcher.step()
    world.adapt(0, [3], [1250])
    dispatcher.step()
    dispatcher.step()
    assert world.content() == {10: [1050, 1080]}
    assert dispatcher.streams[IRI].known == 2


def test_what_was_cut_by_nothing_is_taken_however_much_is_wanted_by_now():
    """Whoever discards nothing need not look whether more is wanted; a registration point does not wait for it."""
    stream = StreamTime(declaration(), 1, 0)
    stream.take(0, _cut(0, 2), 0, 0)
    stream.take(0, _cut(0, 0, offset=1), 1, 0)
    stream.take(0, _cut(0, 1, offset=2), 2, 0)
    assert (stream.tallies.outdated, stream.tallies.events, stream.known) == (1, 2, 2)
    state = stream.state()
    assert (state.wanted.tolist(), state.cut_wanted.tolist(), state.next_offsets.tolist()) == ([2], [2], [2])
    restarted = StreamTime(declaration(), 1, 0)
    restarted.restore(state)
    for position, version in enumerate((2, 0, 1)):
        restarted.replay(0, _cut(0, version, offset=position), position)
    restarted.replayed(state)
    assert restarted.state().next_offsets.tolist() == [2]
    only = StreamTime(declaration(), 1, 0)
    only.take(0, _cut(0, 0), 0, 0)
    assert only.state().cut_batches.tolist() == []


def _cut(partition: int, version: int, offset: int = 0) -> Tuples:
    """An event without tuples, cut by a version."""
    one, none = np.array([offset], np.int64), np.empty(0, np.uint64)
    return Tuples(IRI, partition, one, one * 0 + 1050, one * 0, none, none, none, None, version)


def test_a_partition_with_events_on_the_way_is_waited_for_however_long():
    world = World(2)
    world.declare(declaration(idle_timeout_ms=1000))
    dispatcher = world.dispatcher()
    world.produce([1050, 2050], 0)
    world.writer.append([Record(NAMES.events("s"), b"not adapted yet", None, 1)])
    dispatcher.step()
    world.clock.advance(60_000)
    dispatcher.step()
    assert world.batches() == []
    world.adapt(1, [0], [1060])
    dispatcher.step()
    assert world.read(NAMES.late) == []
    world.produce([3000], 1)
    dispatcher.step()
    assert sorted(world.content()[10]) == [1050, 1060]


def test_an_idle_stream_follows_the_others():
    world = World()
    world.declare(declaration(idle_timeout_ms=1000), declaration("http://x/quiet", "quiet", 2, idle_timeout_ms=1000))
    dispatcher = world.dispatcher()
    world.produce([1050], name="quiet", iri="http://x/quiet")
    world.produce([1050, 9050])
    dispatcher.step()
    assert world.batches("http://x/quiet")[-1].last == 9
    world.clock.advance(1001)
    world.produce([9060])
    dispatcher.step()
    assert world.batches("http://x/quiet")[-1].last == 89
    assert world.content("http://x/quiet") == {10: [1050]}


def test_idle_streams_follow_the_wall_clock_where_event_time_does():
    world = World()
    world.declare(declaration(idle_timeout_ms=1000))
    dispatcher = world.dispatcher()
    world.produce([1_000_000])
    dispatcher.step()
    world.clock.advance(5_000)
    dispatcher.step()
    assert world.content() == {9_999: [1_000_000]}
    assert world.batches()[-1].last == (1_005_000 - 1000) // 100 - 1


def test_many_idle_streams_take_turns_and_are_asked_about_together(monkeypatch):
    """A thousand batches of idle streams a second are closed, and a hundred at once; runs of several make up for that."""
    world, count = World(), 300
    iris = [f"http://x/{i}" for i in range(count)]
    world.declare(*(declaration(iri, f"s{i}", i + 1, idle_timeout_ms=1000) for i, iri in enumerate(iris)))
    dispatcher = world.dispatcher()
    for i, iri in enumerate(iris):
        world.produce([1_000_000], name=f"s{i}", iri=iri)
    dispatcher.step()
    questions = []
    monkeypatch.setattr(world.log, "spans", lambda names, ask=world.log.spans: questions.append(1) or ask(names))
    world.clock.advance(1001)
    dispatcher.step()
    assert len(questions) == 2, "for all streams"
    before, heartbeats = len(world.read(NAMES.shards)), []
    for _ in range(200):
        world.clock.advance(10)
        dispatcher.step()
        heartbeats.append(len(world.read(NAMES.shards)) - before)
        before += heartbeats[-1]
    assert max(heartbeats) <= 100
    assert 1_900 <= sum(heartbeats) <= 2_000 + 100 + count, "the first heartbeat of each closes its event's batch apart"
    behind = [world.clock.now_ms() - 1000 - stream.watermark_ms for stream in dispatcher.streams.values()]
    assert max(behind) <= 410, "each has had its turn"


def test_a_stream_of_another_age_does_not_follow_the_wall_clock():
    world = World()
    world.declare(declaration(idle_timeout_ms=1000))
    dispatcher = world.dispatcher()
    world.produce([5_050])
    dispatcher.step()
    world.clock.advance(5_000)
    dispatcher.step()
    assert world.content() == {}


def test_a_producers_heartbeat_closes_batches():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050])
    world.adapt(0, [], [], advance=1100)
    dispatcher.step()
    assert world.content() == {10: [1050]}


def test_a_heartbeat_too_far_ahead_moves_nothing_and_is_counted():
    world = World()
    world.declare(declaration(max_ahead_ms=500))
    dispatcher = world.dispatcher()
    world.produce([1050, 1150])
    world.adapt(0, [], [], advance=world.clock.now_ms() + 501)
    dispatcher.step()
    assert world.content() == {10: [1050]}
    assert dispatcher.tallies().far_advances == 1


def test_duplicates_are_dropped_before_the_lateness_test():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 1150, 1250])
    world.adapt(0, [0, 1, 2, 3], [1050, 1150, 1250, 1260])
    world.adapt(0, [1], [1150])
    world.produce([1350], 0)
    dispatcher.step()
    assert world.read(NAMES.late) == []
    assert dispatcher.tallies().duplicates == 5  # the event produced last has the offset 3 as well


def test_a_dropped_stream_begins_anew():
    world = World()
    world.declare(declaration())
    dispatcher = world.dispatcher()
    world.produce([1050, 1150])
    dispatcher.step()
    world.writer.append([Record(NAMES.control, None, f"stream:{IRI}".encode())])
    dispatcher.step()
    assert dispatcher.streams == {}
    assert dispatcher.tallies().events == 2
    world.declare(declaration(number=7, lateness_ms=50))
    dispatcher.step()
    assert dispatcher.streams[IRI].declaration.number == 7
    world.produce([1010, 1120])  # times that the old one had closed, and none of its tuples
    dispatcher.step()
    restarted = world.dispatcher()
    world.produce([1300])
    restarted.step()
    assert world.content(declared=1) == {10: [1050]}
    assert world.content(declared=7) == {10: [1010], 11: [1120]}


def test_a_younger_dispatcher_goes_on_where_the_older_was():
    world = World()
    world.declare(declaration(lateness_ms=200))
    world.produce([1050, 1350, 1120])
    older = world.dispatcher()
    older.step()
    world.produce([1020, 1180, 1500])
    younger = world.dispatcher()
    younger.step()
    world.produce([1210, 1901])
    with pytest.raises(Exception, match="younger"):
        older.step()
    younger.step()
    reference = World()
    reference.declare(declaration(lateness_ms=200))
    alone = reference.dispatcher()
    reference.produce([1050, 1350, 1120, 1020, 1180, 1500, 1210, 1901])
    alone.step()
    assert world.content() == reference.content()
    assert [e.time_ms for e in world.read(NAMES.late)] == [e.time_ms for e in reference.read(NAMES.late)]


@pytest.mark.parametrize("seed", range(150))
def test_a_crash_at_any_transaction_loses_and_doubles_nothing(seed: int):
    """The same events with and without crashes: the same batches, the same late events."""
    random = Random(seed)
    lateness = random.choice([0, 30, 150, 1000])
    times, now = [], 1000
    for _ in range(60):
        now += random.choice([0, 5, 40, 300])
        times.append(max(1, now - random.choice([0, 0, 20, 100, 500])) + (10**9 if random.random() < 0.03 else 0))
    plain, broken = World(), World()
    results = []
    for world in (plain, broken):
        world.declare(declaration(lateness_ms=lateness))
        dispatcher = world.dispatcher()
        for first in range(0, len(times), 6):
            world.produce(times[first : first + 6])
            if world is broken and random.random() < 0.5:
                world.faults.left = 0
                world.faults.point = random.choice([Point.COMMIT, Point.COMMITTED])
            try:
                dispatcher.step()
            except CrashError:
                dispatcher = world.dispatcher()
            if world is broken and random.random() < 0.3:
                offset = random.randrange(first + 6)
                world.adapt(0, [offset], [times[offset]])  # an adaptor that restarts repeats itself
                dispatcher = world.dispatcher()
        world.faults.left = None
        dispatcher.step()
        late = [(e.offset, e.time_ms) for e in world.read(NAMES.late)]
        dead = [(e.offset, e.time_ms) for e in world.read(NAMES.dead_letter)]
        results.append((world.content(), late, dead))
    assert results[0] == results[1]
