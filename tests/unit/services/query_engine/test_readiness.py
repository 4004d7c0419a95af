"""When a query engine is ready: it keeps up with the log, also while records arrive all the time."""

from __future__ import annotations

from penstock.services.query_engine.service import BEHIND_S, AtEnd


def test_an_engine_is_ready_while_it_is_now_and_then_at_the_end_of_the_log():
    now, at_end = 0.0, False
    watched = AtEnd(lambda: at_end, lambda: now)
    watched.look()
    assert watched.behind() == "behind the end of the log"
    at_end = True
    watched.look()
    at_end = False
    now = BEHIND_S
    watched.look()
    assert watched.behind() is None
    now = BEHIND_S + 1
    assert watched.behind() == "behind the end of the log for 11 s"
    at_end = True
    watched.look()
    assert watched.behind() is None
