"""Shards that are being opened. A thread loads such a shard from a checkpoint while the store serves its other
shards.
"""

from __future__ import annotations

from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

    from penstock.services.store.follower import Follower
    from penstock.services.store.shard_store import ShardStore

    Opened = tuple[ShardStore, Follower]


class Immediate(Executor):
    """An executor that runs each call at once, in the thread of its caller."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Run the call. If the call raises an exception, the future contains the exception."""
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - as in other executors, the future raises it
            future.set_exception(error)
        return future


def loading_thread() -> Executor:
    """Return an executor with one thread. Loading is native and releases the GIL, so the store's steps continue
    meanwhile.
    """
    return ThreadPoolExecutor(1, "shards")


class ShardOpenings:
    """The shards that are being opened. `executor` calls `open_shard` for each shard. Call all methods in the thread
    that performs the store's steps.
    """

    def __init__(self, open_shard: Callable[[int], Opened], executor: Executor) -> None:
        self._open_shard, self._executor = open_shard, executor
        self._loading: dict[int, Future[Opened]] = {}
        self._unwanted: list[Future[Opened]] = []

    def __bool__(self) -> bool:
        return bool(self._loading)

    def numbers(self) -> set[int]:
        """Return the numbers of the shards that are being opened."""
        return set(self._loading)

    def begin(self, number: int) -> None:
        """Begin to open a shard."""
        self._loading[number] = self._executor.submit(self._open_shard, number)

    def keep(self, numbers: Collection[int]) -> None:
        """Discard the shards that are being opened, except the shards in `numbers`."""
        for number in self._loading.keys() - set(numbers):
            self._unwanted.append(self._loading.pop(number))
        self._unwanted = [future for future in self._unwanted if not _discarded(future)]

    def take(self) -> Iterator[Opened]:
        """Yield each shard that has been opened since the last call, with its follower. Raises the exception of a shard
        that could not be opened.
        """
        for number, future in list(self._loading.items()):
            if future.done():
                del self._loading[number]
                yield future.result()

    def close(self) -> None:
        """Discard all shards. Waits for the shard that is being loaded."""
        self.keep(())
        self._executor.shutdown(cancel_futures=True)
        for future in self._unwanted:
            _discarded(future)
        self._unwanted.clear()


def _discarded(future: Future[Opened]) -> bool:
    """Discard a shard. Cancels the opening if the opening has not begun, or withdraws the opened shard. Returns False,
    without effect, while the shard is being loaded.
    """
    if not future.cancel() and not future.done():
        return False
    if not future.cancelled() and future.exception() is None:
        shard, follower = future.result()
        follower.close()
        shard.withdraw()
    return True
