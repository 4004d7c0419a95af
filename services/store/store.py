"""The store service: holds some shards of the stored graph, applies the log to these shards, and serves the shards to
query engines (ADR 38).

The placement lists the shards to serve and to prepare. A thread loads a new shard from the newest checkpoint that any
store has written for the shard. The shard then follows the log separately until it has reached the step of the store's
other shards. Heartbeats list a shard once the shard has been near the end of the log.

A store writes only heartbeats to the log. Two stores can therefore hold the same shard, because the log determines the
content of both copies.
"""

from __future__ import annotations

import secrets
import shutil
from typing import TYPE_CHECKING

from penstock.errors import StorageError
from penstock.log import TransientError
from penstock.replication.heartbeats import HeartbeatSender
from penstock.replication.placement_view import PlacementView
from penstock.replication.retention import Commitments
from penstock.services.store.follower import Follower, empty_replica
from penstock.services.store.leases import Leases
from penstock.services.store.shard_openings import Immediate, ShardOpenings
from penstock.services.store.shard_store import ShardStore

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import Executor
    from pathlib import Path

    from penstock.log import Log
    from penstock.log.clock import Clock
    from penstock.remote import Server
    from penstock.remote.control_connection import Address
    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.replication.replica import Replica
    from penstock.services.store.shard_checkpoints import ShardCheckpoints
    from penstock.services.store.shard_set import ShardSet
    from penstock.term_ids.outgoing_terms import TermEncoder

_TRIES = 3  # attempts to read a checkpoint, which another store can replace meanwhile


class Store:
    """One store process without its sockets.

    `directory`: folder for the shards' regions, on a memory file system; the constructor clears the folder. `server`:
    publishes the regions. `address`: the address at which query engines request leases (`Leases`). If `checkpoints` is
    None, a restart reads the whole log. `loader`: loads shards. If `loader` is None, the step that begins to load a
    shard waits until the shard is loaded.
    """

    shard_type = ShardStore

    def __init__(
        self,
        log: Log,
        topics: ClusterTopics,
        instance: str,
        terms: TermEncoder,
        clock: Clock,
        server: Server,
        directory: Path,
        checkpoints: ShardCheckpoints | None = None,
        leases: Leases | None = None,
        address: Address | None = None,
        loader: Executor | None = None,
    ) -> None:
        self.topics = topics
        self.leases = Leases() if leases is None else leases
        self.last_error: str | None = None  # why the last step made no progress
        self.leaving = False
        self.unready: str | None = "no shards are assigned yet"  # why the store is not ready; once None, it stays None
        self._log, self._terms, self._server, self._directory = log, terms, server, directory
        self._instance = instance
        self._checkpoints = checkpoints
        self._followers: list[Follower] = []  # the most advanced first
        self._openings = ShardOpenings(self._open_shard, loader or Immediate())
        self._made, self._token = 0, secrets.token_hex(4)  # no region gets the path of an earlier region
        self._clock = clock
        self._commitments = Commitments(log, topics)
        self._placement = PlacementView(log, topics, clock)
        self._heartbeat_sender = HeartbeatSender(
            log, topics, clock, "store", instance, None if address is None else str(address)
        )
        shutil.rmtree(directory, ignore_errors=True)  # from a previous process with this name

    # ---- steps
    def step(self, timeout_s: float = 0.0) -> bool:
        """Perform one step. Returns False if there was nothing to do. After a TransientError, `last_error` has the
        reason, and the next step retries.
        """
        self._beat()
        self.leases.expire()
        self.last_error = None
        try:
            moved = self._placed()
            if self._commitments.learn():
                for follower in self._followers:
                    follower.apply_retention_floor(self._commitments)
            moved |= self._follow(timeout_s)
            self._look_ready()
        except TransientError as error:
            self.last_error = str(error)
            return False
        return moved

    def _follow(self, timeout_s: float) -> bool:
        if not self._followers:
            return False
        first, *behind = self._followers
        moved = first.read(self._commitments, 0.0 if behind else timeout_s)
        for follower in behind:
            moved |= follower.read(self._commitments, 0.0, first.step)
        self._join()
        return moved

    def _look_ready(self) -> None:
        """Update `unready`. A store becomes ready once all its shards have been near the end of the log. A store
        without shards becomes ready if each shard has a store that serves no other shard. A ready store stays ready,
        because it serves its shards while it prepares further shards.
        """
        if self.unready is None:
            return
        mine = self._placement.shards_of(self._instance)
        if not mine:
            self.unready = None if self._placement.spread else "no shards are assigned yet"
            return
        missing = sorted(mine - set(self.prepared()))
        self.unready = f"shards are being loaded: {', '.join(map(str, missing))}" if missing else None

    def _join(self) -> None:
        """Merge followers that have reached the same step."""
        for follower in list(self._followers):
            for other in self._followers:
                if other is follower:
                    break
                if other.step == follower.step and other.replica.whole and follower.replica.whole:
                    for shard in follower.graph.shards.values():
                        other.take(shard)
                    follower.close()
                    self._followers.remove(follower)
                    break
        self._followers.sort(key=lambda follower: -follower.step)

    # ---- shards
    @property
    def shards(self) -> dict[int, ShardStore]:
        """All shards of this store, by number. Any thread can read this property."""
        return {n: shard for follower in self.followers() for n, shard in list(follower.graph.shards.items())}

    def _placed(self) -> bool:
        mine = self._placement.shards_of(self._instance)
        if mine is None:
            return False
        held = self.shards
        for number in sorted(held.keys() - mine):
            self._release_shard(held[number])
        self._openings.keep(mine)
        for number in sorted(mine - held.keys() - self._openings.numbers()):
            self._openings.begin(number)
        opened = False
        for shard, follower in self._openings.take():
            follower.take(shard)
            self.leases.add(shard)
            self._followers.append(follower)
            opened = True
        self._join()
        return opened

    def _open_shard(self, number: int) -> tuple[ShardStore, Follower]:
        """Create a shard and its follower, from the shard's newest checkpoint if there is one. Any thread can call this
        method.
        """
        self._made += 1
        directory = self._directory / f"{number}-{self._made}-{self._token}"
        for attempt in range(_TRIES):
            try:
                last = None if self._checkpoints is None else self._checkpoints.last(number)
                saved, replica, positions = last or (None, empty_replica(self.topics.shards), [0] * self.topics.shards)
                shard = self.shard_type(number, self.topics.shards, directory / str(attempt), self._server, saved)
            except StorageError:
                if attempt + 1 == _TRIES:
                    raise
            else:
                return shard, self._follower(shard, replica, positions)
        raise AssertionError(number)

    def _follower(self, shard: ShardStore, replica: Replica[ShardSet], positions: Sequence[int]) -> Follower:
        try:
            return Follower(self._log, self.topics, replica, positions, self._terms, self._clock)
        except TransientError:
            shard.withdraw()
            raise

    def _release_shard(self, shard: ShardStore) -> None:
        self.leases.remove(shard)
        for follower in list(self._followers):
            if follower.graph.shards.pop(shard.number, None) is not None and not follower.graph.shards:
                follower.close()
                self._followers.remove(follower)
        shard.withdraw()
        if self._checkpoints is not None:
            self._checkpoints.release(shard.number)

    def send_heartbeats(self) -> None:
        """Send heartbeats from a thread, independently of the duration of steps."""
        self._heartbeat_sender.start()

    def _beat(self) -> None:
        self._heartbeat_sender.beat(self.prepared(), self.local_vts())

    def leave(self) -> None:
        """Announce the shutdown. The store serves its shards until the placement assigns the shards to other stores."""
        self.leaving = True
        self._heartbeat_sender.leave()
        self._beat()

    @property
    def left(self) -> bool:
        """Whether this store has no shards any more."""
        return not self._followers

    @property
    def alone(self) -> bool:
        """Whether this store serves a shard that no other store prepares, according to the placement. Also True before
        the first placement.
        """
        return not self._placement.replaced(self._instance)

    def checkpoint(self) -> bool:
        """Write checkpoints of all shards of the most advanced follower. Returns False if no checkpoint can be written
        now. StorageError if writing fails.
        """
        if self._checkpoints is None or not self._followers:
            return False
        return self._checkpoints.save(self._followers[0].replica)

    # ---- state
    def prepared(self) -> tuple[int, ...]:
        """Return the numbers of the shards that have been near the end of the log at least once."""
        followers = (follower for follower in self._followers if follower.near_end)
        return tuple(sorted(number for follower in followers for number in follower.graph.shards))

    def local_vts(self) -> dict[str, int]:
        """Return the number of the last batch that all shards of this store have closed, by stream IRI."""
        if not self._followers:
            return {}
        last = self._followers[-1]  # the least advanced
        closed = ((s.iri, s.closed_ms, s.batch_ms) for s in last.graph.streams)
        return {iri: end // batch_ms - 1 for iri, end, batch_ms in closed if end is not None}

    def caught_up(self) -> bool:
        """Return whether every record that the log contained at the last poll is applied to all shards."""
        one = len(self._followers) <= 1 and not self._openings
        return one and all(follower.caught_up() for follower in self._followers)

    def followers(self) -> list[Follower]:
        """Return the followers, the most advanced first. There are several while new shards catch up."""
        return list(self._followers)

    def close(self) -> None:
        """Close the store without a new checkpoint. A restarted store reads the steps since the last checkpoint from
        the log.
        """
        if self.leaving:
            self._heartbeat_sender.left()
        self._heartbeat_sender.close()
        self._openings.close()
        for shard in self.shards.values():
            self.leases.remove(shard)
            shard.withdraw()
        for follower in self._followers:
            follower.close()
        self._followers.clear()
        self._commitments.close()
        if self._checkpoints is not None:
            self._checkpoints.close()
        shutil.rmtree(self._directory, ignore_errors=True)
