"""Which engine gets which buckets, and which store which shards. Pure functions of the last heartbeats.

An engine gets buckets once it has come near the end of the log. A store gets a shard once it has brought it up to date,
as long as the holder still serves it (docs/adr/0058).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from penstock.wire import Heartbeat, Placement


def place_buckets(count: int, before: Mapping[str, str], engines: Mapping[str, Heartbeat]) -> dict[str, str]:
    """Return which engine evaluates each of `count` buckets. `engines`: those heard of.

    Engines that are not ready get buckets only where none is.
    """
    staying = {name for name, beat in engines.items() if not beat.leaves}
    ready = {name for name in staying if engines[name].ready}
    return share_out(count, before, ready or staying)


def place_shards(
    count: int, before: Placement, stores: Mapping[str, Heartbeat]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return which store serves each of `count` shards, and which other one prepares it. `stores`: those heard of."""
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
    """Whether a store serves a shard of its own: one that leaves does as long as its heartbeats have the shard."""
    return holder is not None and (not holder.leaves or int(shard) in holder.holds)


def share_out(count: int, before: Mapping[str, str], alive: Collection[str]) -> dict[str, str]:
    """Return who holds each of `count` shares: as before where that one lives and has no more than its part.

    Deterministic; moves no more shares than it must. Without anybody alive, everything stays as it was.
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
