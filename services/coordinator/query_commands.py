"""Registers and stops standing queries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.engine.answers.evaluation_records import record_format
from penstock.engine.limits import MOST_CATCH_UP
from penstock.errors import DataError
from penstock.log import Topic
from penstock.services.coordinator.registrar import MAX_NAME_BYTES, MAX_REQUEST_BYTES, check_size

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.replication.cluster_topics import ClusterTopics
    from penstock.services.coordinator.filter_updates import FilterUpdates
    from penstock.services.coordinator.registrar import Registrar, ResultOptions
    from penstock.services.coordinator.state_writer import StateWriter
    from penstock.wire import QueryRegistration


class QueryCommands:
    """Registers and stops queries, one transaction per call. A call that raises QueryError, DataError, LimitError or
    NotYetError has written no command; after another error the outcome may be unknown.
    """

    def __init__(
        self, topics: ClusterTopics, registrar: Registrar, writer: StateWriter, filters: FilterUpdates
    ) -> None:
        self._topics = topics
        self._registrar = registrar
        self._writer = writer
        self._filters = filters

    def register(
        self,
        name: str,
        text: str,
        base: str | None,
        topic: str | None,
        max_catch_up: int | None = None,
        *,
        replace: bool = False,
        **options: Unpack[ResultOptions],
    ) -> QueryRegistration:
        """Register a query. `replace`: the query replaces a registered query of the same name.

        Other parameters and errors: see `Coordinator.register`. DataError if `max_catch_up`, the topic or
        `result_format` is invalid;
        LimitError if a text is too long.
        """
        if max_catch_up is not None and not 1 <= max_catch_up <= MOST_CATCH_UP:
            raise DataError(f"max_catch_up must be between 1 and {MOST_CATCH_UP}, not {max_catch_up}")
        check_size("a query's name", name, MAX_NAME_BYTES, "MAX_NAME_BYTES")
        check_size("a query's base", base or "", MAX_NAME_BYTES, "MAX_NAME_BYTES")
        check_size("a query's text", text, MAX_REQUEST_BYTES, "MAX_REQUEST_BYTES")
        record_format(options.get("result_format"))
        stands = self._registrar.stands(name, text, base, topic, max_catch_up, **options)
        if topic is not None and not stands:
            self._topics.check_results(topic)
        parsed = None if stands else self._registrar.parse(text, base)
        not_before_ms = None if parsed is None else self._filters.await_adaptors(parsed.statement)
        verb = self._registrar.replace if replace else self._registrar.register
        change = verb(name, text, base, topic, not_before_ms, max_catch_up, parsed=parsed, **options)
        if topic is not None:
            self._writer.create([Topic(topic)])
        self._writer.commit_change(change)
        return self._registrar.queries[name]

    def stop(self, name: str) -> bool:
        """Stop a query. Return False if there is no query of that name."""
        change = self._registrar.stop(name)
        self._writer.commit_change(change)
        return bool(change.commands)
