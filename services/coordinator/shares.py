"""Assignment of buckets to engines, and of shards to stores. The functions are pure: their arguments are the previous
placement, the last heartbeats and the measured loads.

Buckets are assigned according to load (ADR 97), and only to engines that are near the end of the log. If no engine is
near the end, all engines get buckets. If a store still serves a shard, the shard moves only when the shard's new store
has an up-to-date copy of the shard (ADR 58).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from penstock.wire import Placement

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.wire import Heartbeat

BUSY = 100_000
"""Minimum load of an engine in µs of work per second for moves of buckets because of unequal loads. Below this load,
the cost of a move exceeds the gain.
"""
IMBALANCE = 0.25
"""Limit of the difference between the highest and the lowest load of an engine, as a share of the average load. Buckets
move if the difference is above this limit.
"""
_LEVEL = 0.02
_WORTH = 0.99  # a move must reduce the difference by more than rounding errors


@dataclass(frozen=True, slots=True)
class Loads:
    """The loads of buckets in µs of work per second. `measured`: the last measured load of each bucket.

    `settled`: False for some time after a move of buckets. During this time, the loads are measured again, and unequal
    measured loads are no reason to move further buckets.
    """

    measured: Mapping[str, int] = field(default_factory=dict)
    settled: bool = True

    def weights(self, count: int) -> dict[str, float]:
        """Return a weight for each of `count` buckets. The weight is the bucket's load, or the average load if the
        bucket was not measured. A hundredth of the average load is added, so that buckets without work are spread, too.
        """
        buckets = [*map(str, range(count))]
        known = [self.measured[bucket] for bucket in buckets if bucket in self.measured]
        average = sum(known) / len(known) if any(known) else 1.0
        return {bucket: self.measured.get(bucket, average) + average / 100 for bucket in buckets}


_UNKNOWN = Loads()


def next_placement(
    shards: int,
    buckets: int,
    before: Placement,
    stores: Mapping[str, Heartbeat],
    engines: Mapping[str, Heartbeat],
    loads: Loads = _UNKNOWN,
) -> Placement | None:
    """Return the next placement, with the addresses of the stores, or None if nothing changes. `before`: the last
    placement.

    `shards`, `buckets`: the cluster's numbers of shards and of buckets. `stores`, `engines`: the latest heartbeats, by
    instance. `loads`: see `place_buckets`.
    """
    held, preparing = place_shards(shards, before, stores)
    evaluated = place_buckets(buckets, before.buckets, engines, loads)
    where = {name: beat.url for name, beat in stores.items() if beat.url is not None}
    addresses = before.stores | where
    addresses = {name: addresses[name] for name in sorted(set(held.values())) if name in addresses}
    placement = Placement(before.epoch + 1, held, evaluated, addresses, preparing)
    return None if replace(placement, epoch=before.epoch) == before else placement


def place_buckets(
    count: int, before: Mapping[str, str], engines: Mapping[str, Heartbeat], loads: Loads = _UNKNOWN
) -> dict[str, str]:
    """Return the engine of each of `count` buckets, by bucket. `engines`: the latest heartbeats, by instance. `loads`:
    the loads of the buckets.
    """
    return balance(count, before, accepting(engines), loads)


def accepting(engines: Mapping[str, Heartbeat]) -> set[str]:
    """Return the engines that are allowed to get buckets: all engines that are ready and do not shut down. If no engine
    is ready, return all engines that do not shut down.
    """
    staying = {name for name, beat in engines.items() if not beat.leaves}
    return {name for name in staying if engines[name].ready} or staying


def place_shards(
    count: int, before: Placement, stores: Mapping[str, Heartbeat]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings by shard: the stores that serve the `count` shards, and the stores that prepare shards, in
    order to serve these shards later. `stores`: the latest heartbeats, by instance.
    """
    staying = {name for name, beat in stores.items() if not beat.leaves}
    if not staying:
        return dict(before.shards), {}
    planned = {shard: store for shard, store in before.preparing.items() if store in staying}
    shards, preparing = {}, {}
    for shard, store in share_out(count, {**before.shards, **planned}, staying).items():
        holder = before.shards.get(shard)
        prepared = before.preparing.get(shard) == store and int(shard) in stores[store].holds
        if holder is None or holder == store or prepared or not _serves(stores.get(holder), shard):
            shards[shard] = store
        else:
            shards[shard], preparing[shard] = holder, store
    return shards, preparing


def _serves(holder: Heartbeat | None, shard: str) -> bool:
    """Return whether a store serves a shard that the placement assigns to the store. A store that shuts down serves the
    shard as long as the store's heartbeats list the shard. `holder`: the store's last heartbeat, or None.
    """
    return holder is not None and (not holder.leaves or int(shard) in holder.holds)


def share_out(count: int, before: Mapping[str, str], alive: Collection[str]) -> dict[str, str]:
    """Return the holder of each of `count` shares. `before`: the previous holders. `alive`: the processes to which
    shares can be assigned. If there are no such processes, nothing changes.

    Every process gets an equal part, and keeps as many of its previous shares as fit into this part. The result is
    deterministic.
    """
    if not alive:
        return dict(before)
    names = sorted(alive)
    room = {name: count // len(names) + (i < count % len(names)) for i, name in enumerate(names)}
    found: dict[str, str] = {}
    for share in map(str, range(count)):
        holder = before.get(share)
        if holder is not None and room.get(holder, 0) > 0:
            found[share] = holder
            room[holder] -= 1
    for share in map(str, range(count)):
        if share not in found:
            holder = max(names, key=lambda name: room[name])
            found[share] = holder
            room[holder] -= 1
    return found


def balance(count: int, before: Mapping[str, str], alive: Collection[str], loads: Loads) -> dict[str, str]:
    """Return the engine of each of `count` buckets, so that the engines have similar loads. `before`: the previous
    engines. `alive`: the engines to which buckets can be assigned. If there are no such engines, nothing changes.

    Buckets move only if there is a reason (see `reason_to_move`), and then as few as possible. The result is
    deterministic.
    """
    if not alive:
        return dict(before)
    weights = loads.weights(count)
    found = {bucket: engine for bucket, engine in before.items() if engine in alive and bucket in weights}
    moves = reason_to_move(count, before, alive, loads)
    totals = _totals(found, alive, weights)
    for bucket in sorted(weights.keys() - found.keys(), key=lambda bucket: (-weights[bucket], int(bucket))):
        found[bucket] = min(totals, key=totals.__getitem__)
        totals[found[bucket]] += weights[bucket]
    if moves is not None:
        _level(found, totals, weights)
    return found


def reason_to_move(count: int, before: Mapping[str, str], alive: Collection[str], loads: Loads) -> str | None:
    """Return the reason why buckets must move, or None if no bucket needs to move."""
    weights = loads.weights(count)
    found = {bucket: engine for bucket, engine in before.items() if engine in alive and bucket in weights}
    if len(found) < count:
        return "buckets had no live engine"
    totals = _totals(found, alive, weights)
    if count >= len(totals) > len(set(found.values())):
        return "an engine had no bucket"
    difference = (max(totals.values()) - min(totals.values())) * len(totals) / sum(totals.values())
    if difference <= IMBALANCE or not (loads.settled or not loads.measured):
        return None
    work = _totals(found, alive, {bucket: float(loads.measured.get(bucket, 0)) for bucket in weights})
    if loads.measured and max(work.values()) < BUSY:
        return None
    return f"the loads of engines differed by {difference:.0%} of their average"


def _totals(found: Mapping[str, str], alive: Collection[str], weights: Mapping[str, float]) -> dict[str, float]:
    totals = dict.fromkeys(sorted(alive), 0.0)
    for bucket, engine in found.items():
        totals[engine] += weights[bucket]
    return totals


def _level(found: dict[str, str], totals: dict[str, float], weights: Mapping[str, float]) -> None:
    """Move one bucket after another from the engine with the highest load to the engine with the lowest load. Stop when
    a move no longer reduces the difference between the two loads, or when the difference is at most `_LEVEL` of the
    average.
    """
    enough = _LEVEL * sum(totals.values()) / len(totals)
    while True:
        most, least = max(totals, key=totals.__getitem__), min(totals, key=totals.__getitem__)
        gap = totals[most] - totals[least]
        held = [bucket for bucket, engine in found.items() if engine == most and weights[bucket] < gap * _WORTH]
        if gap <= enough or not held:
            return
        bucket = min(held, key=lambda bucket: (abs(gap - 2 * weights[bucket]), int(bucket)))
        found[bucket] = least
        totals[most] -= weights[bucket]
        totals[least] += weights[bucket]
