"""Assignment of buckets to engines and of shards to stores: pure functions of the previous placement and the last
heartbeats.

An engine gets buckets once it is near the end of the log. If no engine is near the end, all engines get buckets. A
shard that another store still serves moves only when its new store has brought it up to date (ADR 58).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from penstock.wire import Placement

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.wire import Heartbeat


def next_placement(
    shards: int, buckets: int, before: Placement, stores: Mapping[str, Heartbeat], engines: Mapping[str, Heartbeat]
) -> Placement | None:
    """Return the placement that follows `before`, with the addresses of the stores; None if nothing changes.

    `shards`, `buckets`: their numbers in the cluster. `stores`, `engines`: the latest heartbeats, by instance.
    """
    held, preparing = place_shards(shards, before, stores)
    evaluated = place_buckets(buckets, before.buckets, engines)
    where = {name: beat.url for name, beat in stores.items() if beat.url is not None}
    addresses = before.stores | where
    addresses = {name: addresses[name] for name in sorted(set(held.values())) if name in addresses}
    placement = Placement(before.epoch + 1, held, evaluated, addresses, preparing)
    return None if replace(placement, epoch=before.epoch) == before else placement


def place_buckets(count: int, before: Mapping[str, str], engines: Mapping[str, Heartbeat]) -> dict[str, str]:
    """Return the engine of each of `count` buckets, by bucket. `engines`: the latest heartbeats, by instance.

    Engines that are not ready get buckets only if no engine is ready.
    """
    staying = {name for name, beat in engines.items() if not beat.leaves}
    ready = {name for name in staying if engines[name].ready}
    return share_out(count, before, ready or staying)


def place_shards(
    count: int, before: Placement, stores: Mapping[str, Heartbeat]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return two mappings by shard: the stores that serve the `count` shards, and the stores that prepare shards to
    serve them later. `stores`: the latest heartbeats, by instance.
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
    """Return whether a store serves a shard that is assigned to it. A store that shuts down serves the shard as long as
    its heartbeats list it. `holder`: the store's last heartbeat, or None.
    """
    return holder is not None and (not holder.leaves or int(shard) in holder.holds)


def share_out(count: int, before: Mapping[str, str], alive: Collection[str]) -> dict[str, str]:
    """Return the holder of each of `count` shares. `before`: the previous holders. `alive`: the processes to which
    shares may be assigned; if there are none, nothing changes.

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
