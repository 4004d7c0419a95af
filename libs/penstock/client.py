"""`Client`: the embedded engine's verbs against a cluster (API.md).

Events go to Kafka, durable when `push` returns; declarations, queries and stored data to the coordinator;
one-shot queries to a query engine; answers come from the result topics.
"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Self
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode
from urllib.request import Request, urlopen

from penstock.errors import DataError, LimitError, PenstockError, QueryError, UnknownStreamError
from penstock.log import START, Partition, Record, TransientError
from penstock.log.topics import TopicNames

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from penstock.log import Log

_TRIES, _PAUSE_S, _ANSWER_S = 60, 0.25, 70.0
_ERRORS: dict[str, type[PenstockError]] = {
    "DataError": DataError,
    "LimitError": LimitError,
    "UnknownStreamError": UnknownStreamError,
}


@dataclass(frozen=True, slots=True)
class Answered:
    """One evaluation as the result topic has it: `line` is the whole JSON object."""

    query: str
    time: int
    line: Mapping[str, Any]


class Client:
    """A user of a cluster. `url`: coordinators, by comma; `sparql_url`: query engines, by comma."""

    def __init__(
        self,
        bootstrap_servers: str | None = None,
        url: str = "",
        sparql_url: str = "",
        *,
        log: Log | None = None,
        prefix: str = "penstock",
    ) -> None:
        if log is None:
            from penstock.log.kafka import KafkaLog  # noqa: PLC0415 - the cluster extra

            if bootstrap_servers is None:
                raise DataError("a client needs bootstrap_servers")
            log = KafkaLog(bootstrap_servers)
        self._log = log
        self._names = TopicNames(prefix)
        self._writer = log.writer()
        self._coordinators = [part.rstrip("/") for part in url.split(",") if part]
        self._engines = [part.rstrip("/") for part in sparql_url.split(",") if part]

    # ---- declarations, queries, stored data
    def declare_stream(self, iri: str, name: str | None = None, **settings: Any) -> None:
        """Declare a stream; the same again changes nothing. `name` is what its topics are named by."""
        body = json.dumps({"iri": iri, **settings}).encode()
        self._ask(self._coordinators, "PUT", f"/streams/{quote(name or iri, safe='')}", body)

    def drop_stream(self, iri: str) -> None:
        """Forget a stream that no query reads."""
        self._ask(self._coordinators, "DELETE", f"/streams/{quote(iri, safe='')}")

    def register(self, text: str, name: str, base: str | None = None, topic: str | None = None) -> int:
        """Register a standing query; returns its number. `topic`: its own results topic."""
        path = f"/queries/{quote(name, safe='')}{_query(base=base, topic=topic)}"
        return int(json.loads(self._ask(self._coordinators, "PUT", path, text.encode()))["number"])

    def registration_point(self, name: str) -> int | None:
        """Return P of a standing query, ms; None where none of its streams has any progress, or no engine runs."""
        found = json.loads(self._ask(self._coordinators, "GET", f"/queries/{quote(name, safe='')}"))
        point: int | None = found["point"]
        return point

    def stop(self, name: str) -> None:
        """Stop a standing query."""
        self._ask(self._coordinators, "DELETE", f"/queries/{quote(name, safe='')}")

    @property
    def queries(self) -> dict[str, Any]:
        """Standing queries by name."""
        found: dict[str, Any] = json.loads(self._ask(self._coordinators, "GET", "/queries"))
        return found

    def update(self, text: str, base: str | None = None) -> int:
        """Run `INSERT DATA {...}`; returns the number of triples."""
        answer = self._ask(self._coordinators, "POST", f"/update{_query(base=base)}", text.encode())
        return int(json.loads(answer)["triples"])

    def load(
        self, data: bytes, content_type: str = "text/turtle", graph: str | None = None, base: str | None = None
    ) -> int:
        """Store a document; returns the number of its statements."""
        path = f"/data{_query(graph=graph, base=base)}"
        return int(json.loads(self._ask(self._coordinators, "POST", path, data, content_type))["triples"])

    def query(self, text: str) -> Any:
        """Ask once; returns SPARQL Results JSON as Python data, or N-Triples text for CONSTRUCT."""
        answer = self._ask(self._engines, "POST", "/sparql", text.encode(), "application/sparql-query")
        return json.loads(answer) if answer[:1] == b"{" else answer.decode()

    # ---- events
    def push(self, name: str, data: bytes | str, timestamp: int, content_type: str = "application/n-triples") -> None:
        """Produce one event to the stream of that name; durable on return."""
        self.push_events(name, [(timestamp, data)], content_type)

    def push_events(
        self, name: str, events: Iterable[tuple[int, bytes | str]], content_type: str = "application/n-triples"
    ) -> None:
        """Produce events in order; durable on return."""
        kind = ("content-type", content_type.encode())
        self._writer.append(
            [
                Record(
                    self._names.events(name),
                    data.encode() if isinstance(data, str) else data,
                    headers=(kind, ("timestamp", str(time_ms).encode())),
                )
                for time_ms, data in events
            ]
        )

    def advance(self, name: str, timestamp: int) -> None:
        """Say that no event at or before a time will follow in the stream's first partition."""
        beat = (("heartbeat", str(timestamp).encode()),)
        self._writer.append([Record(self._names.events(name), b"", headers=beat)])

    # ---- answers
    def results(self, topic: str | None = None, *, until_idle_s: float | None = None) -> Iterator[Answered]:
        """Yield committed evaluations from the topic's start on; ends after `until_idle_s` without a new one."""
        heard = time.monotonic()
        for answered in self.watch(topic):
            if answered is not None:
                heard = time.monotonic()
                yield answered
            elif until_idle_s is not None and time.monotonic() - heard > until_idle_s:
                return

    def watch(self, topic: str | None = None) -> Iterator[Answered | None]:
        """Yield committed evaluations from the topic's start on, and None about ten times a second while none comes."""
        name = topic or self._names.results
        partitions = self._log.topics().get(name, 0)
        reader = self._log.reader({Partition(name, i): START for i in range(partitions)})
        try:
            while True:
                messages = reader.poll(1_000, 0.1)
                for message in messages:
                    line = json.loads(message.value or b"{}")
                    yield Answered(line["query"], line["time"], line)
                if not messages:
                    yield None
        finally:
            reader.close()

    def close(self) -> None:
        """Close the connections."""
        self._writer.close()
        self._log.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- HTTP
    def _ask(
        self, bases: list[str], method: str, path: str, body: bytes | None = None, content_type: str = "text/plain"
    ) -> bytes:
        """Ask one instance after the other until one answers. Verbs are idempotent, so asking again is harmless."""
        failed = "no URL was given"
        for attempt in range(_TRIES):
            if not bases:
                break
            headers = {"content-type": content_type}
            request = Request(bases[attempt % len(bases)] + path, body, headers, method=method)  # noqa: S310
            try:
                with urlopen(request, timeout=_ANSWER_S) as response:  # noqa: S310
                    found: bytes = response.read()
                    return found
            except HTTPError as error:
                answer = error.read()
                if error.code != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise _error(answer, error.code) from error
                failed = answer.decode("utf-8", "replace")
            except (URLError, ConnectionError, TimeoutError) as error:
                failed = str(error)
            time.sleep(_PAUSE_S)
        raise TransientError(f"{method} {path}: {failed}")


def _query(**parameters: str | None) -> str:
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"?{urlencode(given)}" if given else ""


def _error(answer: bytes, code: int) -> PenstockError:
    try:
        found = json.loads(answer)
        name, message = found["error"], found["message"]
    except (ValueError, KeyError, TypeError):
        return PenstockError(f"HTTP {code}: {answer[:200]!r}")
    if name == "QueryError":
        return QueryError(message, int(found["line"]), int(found["column"]))
    return _ERRORS.get(name, PenstockError)(message)
