"""The list of the members of a query engine's query sets.

Other threads ask for members. The engine's thread takes the columns of the members between two steps, because only this
thread can read the columns while members change.
"""

from __future__ import annotations

import json
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, TypeAlias

from penstock.engine.sets.member_excerpt import MemberExcerpt
from penstock.engine.sets.set_member import RECORD_KEY
from penstock.errors import DataError, PenstockError, UnavailableError
from penstock.http.member_pages import page_request
from penstock.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.engine.sets.member_excerpt import ListedMember, MemberPage
    from penstock.services.query_engine.buckets import Bucket
    from penstock.services.query_engine.sets.member_feed import MemberFeed

WAIT_S = 10.0
"""Maximum time in s that a request waits for the engine's thread."""
_Taken: TypeAlias = "tuple[MemberExcerpt, tuple[str, ...]] | None"


class MemberLists:
    """Lists members. `buckets`: the engine's buckets, by number."""

    def __init__(self, buckets: Mapping[int, Bucket]) -> None:
        self._buckets = buckets
        self._waiting: SimpleQueue[tuple[str, Mapping[str, str], Future[_Taken]]] = SimpleQueue()

    def find(self, name: str, asked: Mapping[str, str]) -> MemberPage | None:
        """Return members of a query set, or None if this engine does not evaluate the set. `asked`: the parameters of
        the request (`penstock.http.member_pages`). The parameter `bucket` chooses the part of the set in this bucket.
        Any thread except the engine's can call this method.

        UnavailableError if the engine has not restored the members yet, or if its thread is busy for `WAIT_S`.
        """
        found: Future[_Taken] = Future()
        self._waiting.put((name, asked, found))
        try:
            taken = found.result(WAIT_S)
        except FutureTimeoutError:
            found.cancel()
            raise UnavailableError(f"the query engine has not listed the members of {name} in {WAIT_S:g} s") from None
        if taken is None:
            return None
        excerpt, key = taken
        page = excerpt.page()
        return replace(page, members=[_with_columns(each, key) for each in page.members])

    def step(self) -> None:
        """Answer the waiting requests. Call in the engine's thread."""
        while True:
            try:
                name, asked, found = self._waiting.get_nowait()
            except Empty:
                return
            if not found.set_running_or_notify_cancel():
                continue
            try:
                found.set_result(self._take(name, asked))
            except PenstockError as error:
                found.set_exception(error)

    def _take(self, name: str, asked: Mapping[str, str]) -> _Taken:
        bucket = asked.get("bucket", "")
        feed = self._feed(name, int(bucket) if bucket.isdecimal() and len(bucket) < 10 else None)
        if feed is None:
            return None
        if feed.restoring:
            raise UnavailableError(f"the members of query set {name} are being restored")
        key = feed.registration.record.key
        return MemberExcerpt(feed.member, page_request(asked, lambda text: record_key(text, len(key)))), key

    def _feed(self, name: str, number: int | None) -> MemberFeed | None:
        for bucket in self._buckets.values():
            for feed in bucket.feeds.values() if number in (None, bucket.number) else ():
                if feed.registration.record.name == name and feed.registration.stopped is None:
                    return feed
        return None


def record_key(text: str, columns: int) -> str:
    """Return the key of a member's record. `text`: the parameter `member` of a request. `columns`: the number of
    columns of the set's key. If there are several columns, the text is a JSON array, possibly with other spaces.
    """
    values = _array(text) if columns > 1 else None
    return text if values is None else json.dumps(values, ensure_ascii=False)


def _with_columns(found: ListedMember, key: tuple[str, ...]) -> ListedMember:
    """Replace the column `RECORD_KEY` of a row with the columns of the set's key. A key of another form, which a
    producer has chosen, is not part of the row.
    """
    row = {name: value for name, value in found.row.items() if name != RECORD_KEY}
    values = [found.key] if len(key) == 1 else _array(found.key) or []
    if len(values) == len(key):
        row |= {name: value for name, value in zip(key, values, strict=True) if name not in row}
    return replace(found, row=row)


def _array(text: str) -> list[str] | None:
    try:
        found = parse_json(text.encode(), "the key")
    except DataError:
        return None
    if not isinstance(found, list):
        return None
    return [each if isinstance(each, str) else json.dumps(each, ensure_ascii=False) for each in found]
