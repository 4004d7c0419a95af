"""Saves a store's shards one after another: each is copied between two steps, and written by a thread beside them.

So a step waits for one shard's copy at most, and shards' checkpoints are of different steps: each says its own.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future

    from penstock.services.store.shard_checkpoints import ShardCheckpoints
    from penstock.services.store.store import Store


class BackgroundCheckpoint:
    """One thread for a store's checkpoints. All calls are from the thread that steps the store."""

    def __init__(self, store: Store, checkpoints: ShardCheckpoints) -> None:
        self._store, self._checkpoints = store, checkpoints
        self._executor = ThreadPoolExecutor(1, "checkpoints")
        self._due: list[int] = []
        self._writing: Future[None] | None = None

    @property
    def idle(self) -> bool:
        """Whether all that was to be saved is."""
        return not self._due and self._writing is None

    def begin(self) -> None:
        """Let every shard be saved that follows the log with the furthest, unless that is under way."""
        followers = self._store.followers()
        if self.idle and followers:
            self._due = sorted(followers[0].graph.shards, reverse=True)

    def step(self) -> bool:
        """Go on; True where the last shard has just been saved. StorageError: one could not be, the others go on."""
        if self._writing is not None:
            if not self._writing.done():
                return False
            done, self._writing = self._writing, None
            done.result()
            if not self._due:
                return True
        if self._due and (followers := self._store.followers()) and followers[0].replica.whole:
            shard = followers[0].graph.shards.get(self._due.pop())
            if shard is not None:  # else it has moved on meanwhile
                self._writing = self._executor.submit(self._checkpoints.capture(followers[0].replica, shard).write)
        return False

    def close(self) -> None:
        """Wait for what is being written. What could not be is in the log."""
        self._executor.shutdown(wait=True)
