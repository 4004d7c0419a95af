"""Event time over several partitions, and over such as come later (docs/semantics.md §2)."""

from __future__ import annotations

import numpy as np
import pytest

from penstock.log import Record, TransientError
from penstock.services.dispatcher.stream_time import StreamTime
from penstock.wire import Tuples, encode
from support.dispatching import IRI, NAMES, StateMachine, declaration


def test_the_watermark_is_the_least_of_the_partitions():
    state_machine = StateMachine(2)
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 2050], 0)
    dispatcher.step()
    assert state_machine.batches() == [], "the other partition may still have earlier events"
    state_machine.produce([1020, 1130], 1)
    dispatcher.step()
    assert sorted(state_machine.content()[10]) == [1020, 1050]
    assert state_machine.read(NAMES.late) == []


def test_an_idle_partition_is_excluded_until_its_next_record():
    state_machine = StateMachine(2)
    state_machine.declare(declaration(idle_timeout_ms=1000))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 2050], 0)
    dispatcher.step()
    state_machine.clock.advance(1001)
    state_machine.produce([2060], 0)
    dispatcher.step()
    assert state_machine.content() == {10: [1050]}
    state_machine.produce([2070], 1)
    state_machine.produce([5000], 0)
    dispatcher.step()
    dispatcher.step()
    assert list(state_machine.content()) == [10], "it speaks again, so it is waited for"


def test_a_stream_may_gain_partitions_which_are_waited_for_then():
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 1150])
    dispatcher.step()
    for topic in (NAMES.events("s"), NAMES.tuples("s")):
        state_machine.log.grow(topic, 2)
    state_machine.clock.advance(5_001)
    dispatcher.step()
    state_machine.produce([1250])
    dispatcher.step()
    assert state_machine.content() == {10: [1050]}, "the new partition may have earlier events"
    state_machine.produce([1160, 1300], 1)
    state_machine.produce([1310])
    dispatcher.step()
    dispatcher.close()
    state_machine.dispatcher().step()
    assert state_machine.content() == {10: [1050], 11: [1150, 1160]}, "a restart knows it too"
    assert state_machine.read(NAMES.late) == []


def test_a_restart_waits_for_partitions_that_brokers_do_not_tell_of_yet():
    """One that has just come back may know fewer than there are: what was taken of the others would be taken again."""
    state_machine = StateMachine(2)
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    dispatcher.step()
    state_machine.produce([1050, 1150])
    state_machine.produce([1060, 1170], 1)
    dispatcher.step()
    dispatcher.close()
    ask = state_machine.log.topics
    state_machine.log.topics = lambda: ask() | {NAMES.tuples("s"): 1}
    younger = state_machine.dispatcher()
    younger.step()
    assert younger.streams == {}
    state_machine.log.topics = ask
    younger.step()
    state_machine.produce([1250])
    state_machine.produce([1270], 1)
    state_machine.clock.advance(5_001)
    younger.step()
    younger.step()
    assert state_machine.content() == {10: [1050, 1060], 11: [1150, 1170]}
    assert state_machine.read(NAMES.late) == []


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
    assert [part.filter_version for part in restarted.partitions] == [2, 2, 2]


def test_what_was_read_is_taken_where_brokers_could_not_be_asked_in_the_middle_of_it():
    """A record that was cut by a later version has it asked for partitions that nobody has counted yet."""
    state_machine = StateMachine()
    state_machine.declare(declaration())
    dispatcher = state_machine.dispatcher()
    dispatcher.step()
    state_machine.produce([1050])
    state_machine.writer.append([Record(NAMES.tuples("s"), encode(_cut(0, 2, offset=1)), None, 0)])
    state_machine.adapt(0, [2], [1080])
    ask = state_machine.log.topics

    def unavailable() -> dict[str, int]:
        state_machine.log.topics = ask
        raise TransientError("the brokers do not answer")

    state_machine.log.topics = unavailable
    with pytest.raises(TransientError):
        dispatcher.step()
    state_machine.adapt(0, [3], [1250])
    dispatcher.step()
    dispatcher.step()
    assert state_machine.content() == {10: [1050, 1080]}
    assert dispatcher.streams[IRI].known == 2


def test_unfiltered_tuples_are_accepted_whatever_the_filter_version():
    """An adaptor that discards nothing need not know the filter version; a registration point does not wait for it."""
    stream = StreamTime(declaration(), 1, 0)
    stream.take(0, _cut(0, 2), 0, 0)
    stream.take(0, _cut(0, 0, offset=1), 1, 0)
    stream.take(0, _cut(0, 1, offset=2), 2, 0)
    assert (stream.tallies.outdated, stream.tallies.events, stream.known) == (1, 2, 2)
    state = stream.state()
    assert (state.filter_versions.tolist(), state.cut_filter_versions.tolist(), state.next_offsets.tolist()) == (
        [2],
        [2],
        [2],
    )
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
    state_machine = StateMachine(2)
    state_machine.declare(declaration(idle_timeout_ms=1000))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050, 2050], 0)
    state_machine.writer.append([Record(NAMES.events("s"), b"not adapted yet", None, 1)])
    dispatcher.step()
    state_machine.clock.advance(60_000)
    dispatcher.step()
    assert state_machine.batches() == []
    state_machine.adapt(1, [0], [1060])
    dispatcher.step()
    assert state_machine.read(NAMES.late) == []
    state_machine.produce([3000], 1)
    dispatcher.step()
    assert sorted(state_machine.content()[10]) == [1050, 1060]
