"""Background checkpoints of a store's shards: the store copies a shard between two steps, and a thread writes the copy.

A step is delayed by the copy of at most one shard. The checkpoints of different shards can reflect different steps.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.services.store.shard_checkpoints import ShardCheckpoints
    from penstock.services.store.store import Store


class BackgroundCheckpoint:
    """The checkpoint thread of a store. Call all methods in the thread that performs the store's steps."""

    def __init__(self, store: Store, checkpoints: ShardCheckpoints) -> None:
        self._store, self._checkpoints = store, checkpoints
        self._executor = ThreadPoolExecutor(1, "checkpoints")
        self._due: list[int] = []
        self._writing: Future[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether no checkpoint is pending or in progress."""
        return not self._due and self._writing is None

    def begin(self) -> None:
        """Schedule checkpoints of all shards of the most advanced follower. Does nothing if earlier checkpoints are
        pending or in progress.
        """
        followers = self._store.followers()
        if self.idle and followers:
            self._due = sorted(followers[0].graph.shards, reverse=True)

    def step(self) -> bool:
        """Begin the next checkpoint if the previous checkpoint is written. Returns True when the last scheduled
        checkpoint is written. StorageError if a checkpoint could not be written; later calls continue with the other
        shards.
        """
        if self._writing is not None:
            if not self._writing.done():
                return False
            done, self._writing = self._writing, None
            done.result()
            if not self._due:
                return True
        if self._due and (followers := self._store.followers()) and followers[0].replica.whole:
            shard = followers[0].graph.shards.get(self._due.pop())
            if shard is not None:  # otherwise the shard was released
                self._writing = self._executor.submit(self._checkpoints.capture(followers[0].replica, shard).write)
        return False

    def close(self) -> None:
        """Wait for the checkpoint that is being written, and discard the pending checkpoints. After a restart, the
        store reads the steps that no checkpoint contains from the log.
        """
        self._executor.shutdown(wait=True)
