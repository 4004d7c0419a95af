"""Consumes evaluations from the results topics. One reader per topic distributes the evaluations to the queries of a
client.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import deque
from dataclasses import dataclass
from threading import Event, RLock, Thread
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.client.answers import answer_of, none_of
from penstock.engine.answers.avro.row_records import query_of
from penstock.engine.answers.record_lines import format_of, lines_of
from penstock.errors import DataError, LimitError, PenstockError
from penstock.log import END, START
from penstock.log.view import partitions_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping

    import rdflib

    from penstock.client.cluster_status import ClusterQueryStatus
    from penstock.engine.answers.answer_values import Solutions
    from penstock.event_time.gaps import Gap
    from penstock.log import Log, Message, Reader

    Bounds: TypeAlias = tuple[int | None, int]

UNTAKEN = 100_000
"""Maximum number of pending evaluations of a query. While a query has this many pending evaluations, the client does
not read the query's topic further.
"""
_POLL, _WAIT_S = 1_000, 0.1
_log = logging.getLogger("penstock.client")


@dataclass(frozen=True, slots=True)
class Answered:
    """An evaluation in a results topic. `line`: the evaluation as a JSON object, independent of the format of the
    record (docs/kafka.md).
    """

    query: str
    time: int
    line: Mapping[str, Any]


class ClusterEvaluation:
    """The answer of a query at one instant, like the embedded engine's `Evaluation`. The answer is decoded on
    access.
    """

    __slots__ = ("_answer", "line", "query", "time")

    def __init__(self, line: Mapping[str, Any]) -> None:
        self.line = line
        self.query: str = line["query"]
        self.time: int = line["time"]
        self._answer: Solutions | bool | rdflib.Graph | None = None

    def __repr__(self) -> str:
        return f"<Evaluation of {self.query} at {self.time}>"

    @property
    def member(self) -> str | None:
        """For an evaluation of a query set, the key of the member. None for an evaluation of a query."""
        found: str | None = self.line.get("member")
        return found

    @property
    def windows(self) -> dict[str, Bounds]:
        """The nominal bounds of each window, by IRI of the stream or named window. Each value is (start, exclusive;
        end, inclusive), in ms. The start is None if the window has no start.
        """
        return {iri: (start, end) for iri, (start, end) in self.line["windows"].items()}

    @property
    def snapshot(self) -> int:
        """The number of the snapshot of the stored graph that the evaluation has read."""
        return int(self.line["snapshot"])

    @property
    def attempt(self) -> int:
        """The attempt: the highest epoch among the buckets that the evaluating query engine has opened. Each opening of
        a bucket, by any engine, increments the bucket's epoch.
        """
        return int(self.line["attempt"])

    @property
    def error(self) -> LimitError | None:
        """The reason why the evaluation has no answer, or None."""
        return LimitError(self.line["error"]) if "error" in self.line else None

    @property
    def answer(self) -> Solutions | bool | rdflib.Graph:
        """The answer: Solutions for SELECT, bool for ASK, an rdflib graph for CONSTRUCT and DESCRIBE. If `error` is not
        None, raises `error`. Raises PenstockError if the record has only `added` and `removed` (see `complete`).
        """
        if self.error is not None:
            raise self.error
        if self._answer is None:
            if not self.complete:
                message = "the record has `added` and `removed` only: apply them to the previous answer"
                raise PenstockError(f"{message} ({self.query} at {self.time})")
            self._answer = answer_of(self.line)
        return self._answer

    @property
    def complete(self) -> bool:
        """Whether the record has the complete answer or an `error`. A complete answer replaces the earlier answer.

        If the query was registered with `changes`, its first record has the complete answer. After the results topic
        has rejected a record, the next record with an answer has the complete answer, too. All other records with an
        answer have only `added` and `removed`.
        """
        return "added" not in self.line

    @property
    def added(self) -> Solutions | bool | rdflib.Graph:
        """The rows or triples of the answer that the previous answer did not have (see `Evaluation.added` of the
        embedded engine).

        The previous answer is the answer of the last earlier evaluation without an error. If the record has the
        complete answer (`complete`), `added` is the whole answer. If `error` is not None, raises `error`.
        """
        if self.error is not None:
            raise self.error
        return answer_of(self.line.get("added", self.line))

    @property
    def removed(self) -> Solutions | bool | rdflib.Graph:
        """The rows or triples of the previous answer that this answer does not have; see `added`. If the record has the
        complete answer, the result is empty, or False for an ASK. The consumer must then replace the earlier answer.
        """
        if self.error is not None:
            raise self.error
        return answer_of(self.line["removed"]) if not self.complete else none_of(self.line)


def evaluations_of(message: Message, chosen: Callable[[str], bool] = lambda _: True) -> Iterator[Mapping[str, Any]]:
    """Yield the evaluations in a message of a results topic. `chosen`: see `lines_of`."""
    if message.value is not None:
        yield from lines_of(message.value, message.headers, chosen)


class Results:
    """The readers of a client for results topics. The readers deliver each committed evaluation once. Methods can be
    called from any thread.
    """

    def __init__(self, log: Log) -> None:
        self._log = log
        self._readers: dict[str, Reader] = {}
        # by topic: messages that are read but not distributed, while the queue of a query is full
        self._read_ahead: dict[str, deque[Message]] = {}
        # by query: its topic and its pending evaluations
        self._waiting: dict[str, tuple[str, deque[ClusterEvaluation]]] = {}
        self._unreadable: set[str] = set()  # queries whose last record was in Avro
        self._lock = RLock()

    def follow(self, topic: str, query: str, *, made: bool = False) -> None:
        """Deliver the evaluations of a query from now on. `made`: whether the query is registered already. The topic of
        a registered query exists.

        For a new query, call this method twice: before the registration, and again with `made` after the registration.
        The first call begins to read at the topic's end if the topic exists. If the topic does not exist before the
        registration, the second call begins to read at the topic's start. In both cases, no evaluation is missed.

        If the client has followed the query in another topic before, a call with `made` replaces that topic by `topic`.
        """
        with self._lock:
            if topic not in self._readers and (partitions := partitions_of(self._log, topic)):
                self._readers[topic] = self._log.reader(dict.fromkeys(partitions, START if made else END))
            before, waiting = self._waiting.setdefault(query, (topic, deque()))
            if made and before != topic:
                self._waiting[query] = (topic, waiting)
                self._leave(before)

    def unfollow(self, query: str) -> None:
        """Stop delivering evaluations of a query. Closes the reader of the query's topic if no other query needs this
        reader.
        """
        with self._lock:
            self._leave(self._waiting.pop(query, ("", None))[0])

    def _leave(self, topic: str) -> None:
        if topic in self._readers and all(other != topic for other, _ in self._waiting.values()):
            self._readers.pop(topic).close()
            self._read_ahead.pop(topic, None)

    def take(self, query: str, limit: int | None, timeout_s: float) -> list[ClusterEvaluation]:
        """Remove and return pending evaluations of a query, at most `limit` evaluations (None: all). Waits at most
        `timeout_s` seconds for the first evaluation. LimitError if another query's queue is full. The evaluations of
        the requested query then cannot be read. DataError if the query's records are in Avro.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            with self._lock:
                topic, waiting = self._waiting.get(query, ("", deque()))
                if topic in self._readers:
                    try:
                        self._read(topic, 0.0 if waiting else min(timeout_s, _WAIT_S))
                    except LimitError:
                        if not waiting:
                            raise
                if query in self._unreadable and not waiting:
                    raise DataError(f"the result records of {query} are in Avro, without RDF terms: consume its topic")
                taken = [waiting.popleft() for _ in range(len(waiting) if limit is None else min(limit, len(waiting)))]
            if taken or topic not in self._readers or time.monotonic() >= deadline:
                return taken

    def _read(self, topic: str, timeout_s: float) -> None:
        """Read a topic to its end, and distribute the evaluations to the queues of their queries.

        LimitError if a queue is full. The remaining messages wait until evaluations are taken from this queue.
        """
        reader, ahead = self._readers[topic], self._read_ahead.setdefault(topic, deque())
        while ahead or (messages := reader.poll(_POLL, timeout_s)):
            if not ahead:
                ahead.extend(messages)
            while ahead:
                self._deal_out(ahead[0])
                ahead.popleft()

    def _deal_out(self, message: Message) -> None:
        """Distribute the evaluations in a message. If a queue is full, raises LimitError and distributes no
        evaluation.
        """
        if message.value is not None and format_of(message.headers) == "avro":
            self._unreadable.add(query_of(message.value))
            return
        found = list(evaluations_of(message, self._waiting.__contains__))
        for line in found:
            if len(self._waiting[line["query"]][1]) >= UNTAKEN:
                raise LimitError(f"{UNTAKEN} evaluations of {line['query']} are pending; poll them")
        for line in found:
            self._unreadable.discard(line["query"])
            self._waiting[line["query"]][1].append(ClusterEvaluation(line))

    def watch(self, topic: str) -> Iterator[Answered | None]:
        """Yield the committed evaluations of a topic, from its start. While there are no new evaluations, yields None
        about ten times per second.
        """
        reader = self._log.reader(dict.fromkeys(partitions_of(self._log, topic), START))
        try:
            while True:
                messages = reader.poll(_POLL, _WAIT_S)
                for message in messages:
                    for line in evaluations_of(message):
                        yield Answered(line["query"], line["time"], line)
                if not messages:
                    yield None
        finally:
            reader.close()

    def close(self) -> None:
        """Close all readers."""
        with self._lock:
            for query in list(self._waiting):
                self.unfollow(query)


class ClusterQuery:
    """A standing query of a cluster, as an object of a client.

    The object delivers evaluations that are committed after the client has obtained it. Earlier evaluations are in the
    results topic.
    """

    def __init__(
        self,
        name: str,
        number: int,
        text: str,
        results: Results,
        stop: Callable[[str], None],
        gaps: Callable[[str], list[Gap]],
        status: Callable[[str, int], ClusterQueryStatus],
    ) -> None:
        self.name, self.number, self.text = name, number, text
        self.stopped = False
        self._results = results
        self._stop, self._gaps, self._status = stop, gaps, status

    def __repr__(self) -> str:
        return f"<Query {self.name}{' (stopped)' if self.stopped else ''}>"

    @property
    def gaps(self) -> list[Gap]:
        """The gaps: ranges of instants that the query has skipped. Sends a request to the coordinator."""
        return self._gaps(self.name)

    def status(self) -> ClusterQueryStatus:
        """Return the status of the query. The status shows which streams the query waits for, and which input would end
        the wait. Sends requests to the coordinator and the query engines.

        TransientError if no coordinator responds within about 15 s.
        """
        return self._status(self.name, self.number)

    def poll(self, limit: int | None = None, timeout_s: float = 0.0) -> list[ClusterEvaluation]:
        """Remove and return pending evaluations in order of time, at most `limit` evaluations (None: all). Waits at
        most `timeout_s` seconds for the first evaluation. LimitError if another query of the topic must be polled
        first.
        """
        return self._results.take(self.name, limit, timeout_s)

    def subscribe(self, callback: Callable[[ClusterEvaluation], object]) -> Callable[[], None]:
        """Call `callback` with every new evaluation, in order, in a separate thread. Exceptions of `callback` are
        logged. Returns a function that ends the subscription.
        """
        ended = Event()

        def deliver() -> None:
            while not (ended.is_set() or self.stopped):
                for evaluation in self.poll(timeout_s=_WAIT_S):
                    try:
                        callback(evaluation)
                    except Exception:  # noqa: BLE001 - a user's function may raise anything
                        _log.exception("a subscriber of %s failed on its evaluation at %d", self.name, evaluation.time)

        thread = Thread(target=deliver, name=f"penstock-{self.name}", daemon=True)
        thread.start()

        def unsubscribe() -> None:
            ended.set()
            thread.join()

        return unsubscribe

    async def __aiter__(self) -> AsyncIterator[ClusterEvaluation]:
        """Yield evaluations when they are committed. The iterator ends when this client stops the query."""
        while not self.stopped:
            for evaluation in await asyncio.to_thread(self.poll, None, _WAIT_S):
                yield evaluation

    def stop(self) -> None:
        """Stop the query for all users."""
        if not self.stopped:
            self.stopped = True
            self._stop(self.name)
