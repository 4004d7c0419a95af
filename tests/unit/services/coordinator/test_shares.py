"""Who gets which shares: only what is ready gets any, and a shard moves once its next store has prepared it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.services.coordinator.shares import Loads, balance, place_buckets, place_shards, reason_to_move
from penstock.wire import Heartbeat, Placement


def beat(name: str, *holds: int, leaves: bool = False, ready: bool = True) -> Heartbeat:
    return Heartbeat("x", name, "1", 0, holds=holds, leaves=leaves, ready=ready)


def beats(*each: Heartbeat) -> dict[str, Heartbeat]:
    return {one.instance: one for one in each}


# ---- engines
def test_an_engine_that_is_not_ready_gets_no_bucket():
    before = {"0": "a", "1": "a"}
    assert place_buckets(2, before, beats(beat("a"), beat("b", ready=False))) == before
    assert sorted(place_buckets(2, before, beats(beat("a"), beat("b"))).values()) == ["a", "b"]


def test_where_no_engine_is_ready_the_living_ones_get_the_buckets():
    found = place_buckets(2, {}, beats(beat("a", ready=False), beat("b", ready=False)))
    assert sorted(found.values()) == ["a", "b"]


def test_an_engine_that_came_back_behind_the_log_is_replaced_until_it_is_ready():
    before = {"0": "a", "1": "b"}
    assert place_buckets(2, before, beats(beat("a", ready=False), beat("b"))) == {"0": "b", "1": "b"}


def test_an_engine_that_leaves_is_replaced_and_the_last_one_is_not():
    before = {"0": "a", "1": "b"}
    assert place_buckets(2, before, beats(beat("a", leaves=True), beat("b"))) == {"0": "b", "1": "b"}
    assert place_buckets(2, before, beats(beat("a", leaves=True), beat("b", leaves=True))) == before


# ---- loads
def sums(found: dict[str, str], loads: dict[str, int]) -> dict[str, int]:
    return {e: sum(loads[b] for b, engine in found.items() if engine == e) for e in set(found.values())}


def test_the_engine_that_joins_gets_half_of_the_work_and_not_half_of_the_buckets():
    loads = {str(n): 900_000 if n == 0 else 100_000 for n in range(10)}
    found = balance(10, dict.fromkeys(loads, "a"), ["a", "b"], Loads(loads))
    assert sums(found, loads) == {"a": 900_000, "b": 900_000}


def test_nothing_moves_while_the_loads_are_similar():
    loads = {"0": 500_000, "1": 100_000, "2": 260_000, "3": 250_000}
    before = {"0": "a", "1": "a", "2": "b", "3": "b"}
    assert balance(4, before, ["a", "b"], Loads(loads)) == before


@pytest.mark.parametrize(
    "loads", [Loads({"0": 900_000, "1": 900_000}, settled=False), Loads({"0": 45_000, "1": 45_000})]
)
def test_nothing_moves_soon_after_a_move_or_while_all_engines_have_little_work(loads):
    before = {"0": "a", "1": "a", "2": "b"}
    assert balance(3, before, ["a", "b"], loads) == before
    assert reason_to_move(3, before, ["a", "b"], loads) is None


def test_a_bucket_with_most_of_the_work_gets_an_engine_of_its_own():
    loads = {"0": 800_000, "1": 100_000, "2": 100_000, "3": 0}
    found = balance(4, {"0": "a", "1": "a", "2": "a", "3": "b"}, ["a", "b"], Loads(loads))
    assert sorted(sums(found, loads).values()) == [200_000, 800_000]


@given(st.data(), st.integers(1, 24), st.integers(1, 5))
def test_after_a_move_no_single_bucket_would_make_the_loads_more_similar(data, count, engines):
    names = [f"e{n}" for n in range(engines)]
    buckets = [str(n) for n in range(count)]
    loads = {b: data.draw(st.integers(0, 1_000_000)) for b in buckets if data.draw(st.booleans())}
    before = {b: data.draw(st.sampled_from([*names, "gone"])) for b in buckets if data.draw(st.booleans())}
    found = balance(count, before, names, Loads(loads))
    assert found.keys() == set(buckets)
    assert set(found.values()) <= set(names)
    assert balance(count, found, names, Loads(loads)) == found, "at rest"
    if reason_to_move(count, before, names, Loads(loads)) is None:
        assert found == before
    else:
        weights = Loads(loads).weights(count)
        totals = {name: sum(w for b, w in weights.items() if found[b] == name) for name in names}
        fullest = max(names, key=totals.__getitem__)
        most, least = totals[fullest], min(totals.values())
        held = [weights[b] for b in buckets if found[b] == fullest]
        assert min(held) >= 0.98 * (most - least) or most - least <= 0.021 * sum(totals.values()) / engines


# ---- stores
def placement(shards: dict[str, str], preparing: dict[str, str] | None = None) -> Placement:
    return Placement(1, shards, {}, {}, preparing or {})


def test_a_shard_stays_with_its_store_until_the_next_one_has_prepared_it():
    before = placement({"0": "a", "1": "a"})
    shards, preparing = place_shards(2, before, beats(beat("a", 0, 1), beat("b")))
    assert (shards, preparing) == ({"0": "a", "1": "a"}, {"1": "b"})
    again = place_shards(2, placement(shards, preparing), beats(beat("a", 0, 1), beat("b")))
    assert again == (shards, preparing), "nothing else moves meanwhile"
    assert place_shards(2, placement(shards, preparing), beats(beat("a", 0, 1), beat("b", 1))) == (
        {"0": "a", "1": "b"},
        {},
    )


def test_a_store_that_leaves_serves_until_the_others_have_prepared_its_shards():
    leaver, before = beat("a", 0, leaves=True), {"0": "a", "1": "b"}
    assert place_shards(2, placement(before), beats(leaver, beat("b", 1))) == (before, {"0": "b"})
    assert place_shards(2, placement(before, {"0": "b"}), beats(leaver, beat("b", 0, 1))) == ({"0": "b", "1": "b"}, {})


@pytest.mark.parametrize("last", [[], [beat("a", leaves=True)]])
def test_a_shard_that_no_store_serves_any_more_moves_at_once(last):
    """Its store died, or has left before another one was prepared."""
    assert place_shards(1, placement({"0": "a"}, {"0": "b"}), beats(*last, beat("b"))) == ({"0": "b"}, {})


def test_the_store_that_prepares_a_shard_gets_it_where_its_holder_dies():
    before = placement({"0": "a", "1": "b", "2": "c", "3": "a"}, {"0": "c"})
    shards, preparing = place_shards(4, before, beats(beat("b", 1), beat("c", 2)))
    assert shards == {"0": "c", "1": "b", "2": "c", "3": "b"}
    assert preparing == {}


def test_where_the_store_that_prepares_dies_the_holder_keeps_the_shard():
    assert place_shards(1, placement({"0": "a"}, {"0": "b"}), beats(beat("a", 0))) == ({"0": "a"}, {})


def test_without_any_store_everything_stays():
    assert place_shards(1, placement({"0": "a"}, {"0": "b"}), {}) == ({"0": "a"}, {})
    assert place_shards(1, placement({"0": "a"}), beats(beat("a", 0, leaves=True))) == ({"0": "a"}, {})


NAMES = ["a", "b", "c"]


@given(st.data(), st.integers(1, 5))
def test_placement_converges_and_no_served_shard_is_without_its_store(data, count):
    """Stores come, leave and die in any order; what is prepared takes its time. At rest, the shares are even."""
    state, holds = placement({}), {name: set() for name in NAMES}
    living: dict[str, bool] = {}  # whether it leaves
    for _ in range(data.draw(st.integers(1, 12))):
        name, what = data.draw(st.sampled_from(NAMES)), data.draw(st.sampled_from(["start", "leave", "die", "prepare"]))
        if what == "start":
            living[name], holds[name] = False, set()
        elif what == "die":
            living.pop(name, None)
        elif what == "leave" and name in living:
            living[name] = True
        elif name in living:
            holds[name] |= {int(n) for n, store in (*state.shards.items(), *state.preparing.items()) if store == name}
        state = _placed(count, state, living, holds)
        for each in NAMES:  # what was placed elsewhere goes
            holds[each] &= {int(n) for n, store in (*state.shards.items(), *state.preparing.items()) if store == each}
    for _ in range(3 * count):
        for name in living:
            holds[name] |= {int(n) for n, store in (*state.shards.items(), *state.preparing.items()) if store == name}
        state = _placed(count, state, living, holds)
    staying = [name for name, leaves in living.items() if not leaves]
    if staying:
        shares = [list(state.shards.values()).count(name) for name in staying]
        assert state.preparing == {}
        assert sum(shares) == count
        assert max(shares) - min(shares) <= 1


def _placed(count: int, before: Placement, living: dict[str, bool], holds: dict[str, set[int]]) -> Placement:
    heard = beats(*(beat(name, *holds[name], leaves=leaves) for name, leaves in living.items()))
    shards, preparing = place_shards(count, before, heard)
    for shard, holder in before.shards.items():
        if shards[shard] != holder and holder in living and int(shard) in holds[holder]:
            assert int(shard) in holds[shards[shard]], "a shard that is served moves only where it is prepared"
    assert not any(preparing[shard] == shards[shard] for shard in preparing)
    return placement(shards, preparing)
