"""The registrations of a replica, and bounds in place of single registrations."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from penstock.replication.registration import GroupRegistrations, Registration, Registrations, buckets_of
from penstock.wire import QueryRegistration

STREAMS = ("http://x/s",)
STEP = 50


def record(number: int, name: str = "", group: int = 7, **options: object) -> QueryRegistration:
    return QueryRegistration(number, name or f"q{number}", "text", group, STREAMS, steps=(100,), **options)


@st.composite
def registrations(draw: st.DrawFn) -> list[Registration]:
    made = []
    for number in range(1, draw(st.integers(2, 7))):
        point = draw(st.none() | st.integers(0, 9))
        after = None if point is None else draw(st.none() | st.integers(point, 12))
        made.append(Registration(record(number), point, draw(st.integers(STEP - 20, STEP + 3)), after=after))
    return made


@dataclass
class Floor:
    """What one query retains, or the least of several queries, in the way of `Commitments.retention_floor`."""

    step: int
    retained: int
    evaluated: int


def floor_of(elements, committed_ms: int | None) -> Floor | None:
    found = []
    for each in elements:
        if each.point is None or each.begins_after is None:
            continue
        progress = committed_ms if each.last_step <= STEP else None
        last = max(each.begins_after, -1 if progress is None else progress)
        retained = each.point if progress is None else progress - 3
        found.append((max(each.first_step, 20 + last), retained, last))
    return Floor(*(min(column) for column in zip(*found, strict=True))) if found else None


@given(registrations(), st.none() | st.integers(3, 15))
def test_the_bounds_of_a_group_retain_what_its_queries_retain(made, committed_ms):
    group = GroupRegistrations(7, STREAMS, past=False, counts=False)
    group.members = {each.record.number: each for each in made}
    single = GroupRegistrations(7, STREAMS, past=False, counts=False)
    each = [bounds for r in made for bounds in members_of(single, r)]
    assert floor_of(group.alike(STEP, committed_ms), committed_ms) == floor_of(each, committed_ms)


def members_of(group: GroupRegistrations, registration: Registration):
    """The registration alone."""
    group.members = {registration.record.number: registration}
    group.changed()
    return group.alike(-1)


def test_a_group_with_progress_is_one_element():
    known = Registrations()
    for number in range(1, 10):
        known.add(Registration(record(number), 100, number))
    [group] = known.groups
    assert len(list(group.alike(step=8, committed_ms=200))) == 9, "the last registration is after the commit"
    assert len(list(group.alike(step=9, committed_ms=50))) == 9, "no query has begun"
    [bounds] = group.alike(step=9, committed_ms=100)
    assert (bounds.point, bounds.begins_after, bounds.first_step, bounds.last_step) == (100, 100, 1, 9)


def test_bounds_follow_the_changes_of_a_group():
    known = Registrations()
    early, late = Registration(record(1), 100, 1), Registration(record(2), None, 2)
    known.add(early)
    known.add(late)
    [group] = known.groups
    assert len(list(group.alike(9, 500))) == 2, "a query without a point"
    known.set_point(late, 300, 4)
    assert (late.point, late.pointed) == (300, 4)
    assert [each.begins_after for each in group.alike(9, 500)] == [300]
    known.stop(early, 8, 450)
    assert [each.point for each in group.alike(9, 500)] == [100], "a stopped query counts until it is removed"
    known.remove(1)
    assert [each.point for each in group.alike(9, 500)] == [300]


def test_queries_by_number_and_by_name():
    known = Registrations()
    first, second = Registration(record(1, "a"), 100, 1), Registration(record(2, "b"), 100, 2)
    known.add(first)
    known.add(second)
    assert known.standing("a") is first
    assert (list(known), len(known), known[2]) == ([1, 2], 2, second)
    known.stop(first, 5, 100)
    assert known.standing("a") is None
    assert known.stopped == {1: first}
    again = Registration(record(3, "a"), 100, 6)
    known.add(again)
    assert known.standing("a") is again
    known.remove(1)
    assert not known.stopped
    assert list(known.values()) == [second, again]


def test_a_restored_query_that_was_stopped_does_not_stand():
    known = Registrations()
    known.add(Registration(record(1, "a"), 100, 1, stopped=3, until=200))
    assert known.standing("a") is None
    assert list(known.stopped) == [1]


def test_a_group_without_queries_is_removed():
    known = Registrations()
    queries = [Registration(record(1), 100, 1), Registration(record(2, group=8), 100, 1)]
    for each in queries:
        known.add(each)
    assert [group.group for group in known.groups] == [7, 8]
    known.stop(queries[0], 2, 100)
    known.remove(1)
    assert [group.group for group in known.groups] == [8]


def test_the_buckets_of_parts():
    assert buckets_of(7, 1, 4) == {3: (0,)}
    assert buckets_of(7, 3, 4) == {3: (0,), 0: (1,), 1: (2,)}
    assert buckets_of(7, 5, 2) == {1: (0, 2, 4), 0: (1, 3)}
