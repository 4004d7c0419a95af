"""Streams that say nothing (docs/semantics.md §2)."""

from __future__ import annotations

from support.dispatching import NAMES, StateMachine, declaration


def test_an_idle_stream_follows_the_others():
    state_machine = StateMachine()
    state_machine.declare(
        declaration(idle_timeout_ms=1000), declaration("http://x/quiet", "quiet", 2, idle_timeout_ms=1000)
    )
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1050], name="quiet", iri="http://x/quiet")
    state_machine.produce([1050, 9050])
    dispatcher.step()
    assert state_machine.batches("http://x/quiet")[-1].last == 9
    state_machine.clock.advance(1001)
    state_machine.produce([9060])
    dispatcher.step()
    assert state_machine.batches("http://x/quiet")[-1].last == 89
    assert state_machine.content("http://x/quiet") == {10: [1050]}


def test_idle_streams_follow_the_wall_clock_where_event_time_does():
    state_machine = StateMachine()
    state_machine.declare(declaration(idle_timeout_ms=1000))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([1_000_000])
    dispatcher.step()
    state_machine.clock.advance(5_000)
    dispatcher.step()
    assert state_machine.content() == {9_999: [1_000_000]}
    assert state_machine.batches()[-1].last == (1_005_000 - 1000) // 100 - 1


def test_many_idle_streams_take_turns_and_are_asked_about_together(monkeypatch):
    """A thousand batches of idle streams a second are closed, and a hundred at once; runs of several make up
    for that.
    """
    state_machine, count = StateMachine(), 300
    iris = [f"http://x/{i}" for i in range(count)]
    state_machine.declare(*(declaration(iri, f"s{i}", i + 1, idle_timeout_ms=1000) for i, iri in enumerate(iris)))
    dispatcher = state_machine.dispatcher()
    for i, iri in enumerate(iris):
        state_machine.produce([1_000_000], name=f"s{i}", iri=iri)
    dispatcher.step()
    questions = []
    monkeypatch.setattr(
        state_machine.log, "spans", lambda names, ask=state_machine.log.spans: questions.append(1) or ask(names)
    )
    state_machine.clock.advance(1001)
    dispatcher.step()
    assert len(questions) == 2, "for all streams"
    before, heartbeats = len(state_machine.read(NAMES.shards)), []
    for _ in range(200):
        state_machine.clock.advance(10)
        dispatcher.step()
        heartbeats.append(len(state_machine.read(NAMES.shards)) - before)
        before += heartbeats[-1]
    assert max(heartbeats) <= 100
    assert 1_900 <= sum(heartbeats) <= 2_000 + 100 + count, "the first heartbeat of each closes its event's batch apart"
    behind = [state_machine.clock.now_ms() - 1000 - stream.watermark_ms for stream in dispatcher.streams.values()]
    assert max(behind) <= 410, "each has had its turn"


def test_a_stream_of_another_age_does_not_follow_the_wall_clock():
    state_machine = StateMachine()
    state_machine.declare(declaration(idle_timeout_ms=1000))
    dispatcher = state_machine.dispatcher()
    state_machine.produce([5_050])
    dispatcher.step()
    state_machine.clock.advance(5_000)
    dispatcher.step()
    assert state_machine.content() == {}
