"""The current keys of an issuer. A separate thread reads the keys. A request waits for this thread only if the key of
the request's token is unknown.
"""

from __future__ import annotations

import logging
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING, Protocol

from penstock.http.security.key_sets import IssuerError

if TYPE_CHECKING:
    from penstock.http.security.key_sets import Key, KeySet

_CLOSE_S = 1.0
_log = logging.getLogger(__name__)


class KeySource(Protocol):
    """The source of keys. `refresh_s`: seconds between regular fetches. `retry_s`: minimum time in s between the last
    fetch and the next fetch, if the next fetch is for an unknown key or follows a failure.
    """

    refresh_s: float
    retry_s: float

    def fetch(self) -> KeySet:
        """Return the current keys. IssuerError if the keys cannot be read."""


class SigningKeys:
    """Keys that are fetched regularly, and also when a token names an unknown key. After a failed fetch, the former
    keys stay in use; `last_error` gives the reason.
    """

    def __init__(self, source: KeySource) -> None:
        self._source = source
        self._keys: KeySet = {}
        self.last_error: str | None = "no keys were fetched yet"
        self._condition = threading.Condition()
        self._fetch: Future[None] | None = _running()
        self._fetched = time.monotonic()
        self._closing = False
        self._thread = threading.Thread(target=self._run, name="signing keys", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, kid: str | None) -> Key | None:
        """Return the key with an id, or None. An id of None stands for the set's only key."""
        keys = self._keys
        if kid is None and len(keys) == 1:
            return next(iter(keys.values()))
        return keys.get(kid)

    def refetch(self) -> Future[None] | None:
        """Start a fetch, or return the fetch in progress. None if the last fetch ended less than `retry_s` ago."""
        with self._condition:
            if self._fetch is None and not self._closing and self.next_fetch_s() <= 0:
                self._fetch = _running()
                self._condition.notify()
            return self._fetch

    def next_fetch_s(self) -> float:
        """Return the time in s until an unknown key can cause a fetch. The time is 0 or negative if an unknown key can
        cause a fetch now.
        """
        return self._fetched + self._source.retry_s - time.monotonic()

    def close(self) -> None:
        """Stop fetching."""
        with self._condition:
            self._closing = True
            self._condition.notify()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while self._await_turn():
            self._load()
            with self._condition:
                done, self._fetch = self._fetch, None
                self._fetched = time.monotonic()
            if done is not None:
                done.set_result(None)

    def _await_turn(self) -> bool:
        """Wait until a fetch is due or requested. Returns False after `close`."""
        pause = self._source.refresh_s if self.last_error is None else self._source.retry_s
        with self._condition:
            due = self._fetched + pause
            while not self._closing and self._fetch is None and (left := due - time.monotonic()) > 0:
                self._condition.wait(left)
            if self._closing:
                done, self._fetch = self._fetch, None
                if done is not None:
                    done.set_result(None)
                return False
            self._fetch = self._fetch or _running()
            return True

    def _load(self) -> None:
        try:
            keys = self._source.fetch()
        except IssuerError as error:
            reason = str(error)
        except Exception as error:  # noqa: BLE001 - a dead thread would never fetch again
            _log.exception("keys of the issuer")
            reason = f"{type(error).__name__}: {error}"
        else:
            if keys.keys() != self._keys.keys():
                _log.info("keys of the issuer: %d", len(keys))
            self._keys, self.last_error = keys, None
            return
        if reason != self.last_error:
            _log.warning("keys of the issuer are not fetched: %s", reason)
        self.last_error = reason


def _running() -> Future[None]:
    """Return a future that its waiters cannot cancel."""
    made: Future[None] = Future()
    made.set_running_or_notify_cancel()
    return made
