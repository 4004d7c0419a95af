"""Registers schemas in a schema registry. The caller does not wait for the registry."""

from __future__ import annotations

import threading
from collections import OrderedDict
from concurrent.futures import Future
from typing import TYPE_CHECKING, Final, TypeAlias

from penstock.errors import DataError, LimitError, NotYetError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.mapping.encodings.schema_registry import SchemaRegistry

MAX_KNOWN: Final = 10_000
"""Maximum number of schemas whose ids are in the cache."""
MAX_PENDING: Final = 100
"""Maximum number of schemas that wait for the registry."""

Start: TypeAlias = "Callable[[Callable[[], None]], object]"


class RegistryUnavailableError(UnavailableError):
    """The schema registry is unavailable. The caller can repeat the request later."""


def in_background(work: Callable[[], None]) -> None:
    """Run a function in a thread that does not keep the process alive."""
    threading.Thread(target=work, name="schema registry", daemon=True).start()


class SchemaRegistration:
    """Returns the ids of schemas, and registers new schemas. Thread-safe.

    `registry` can be None: then each schema is refused. `start` runs a function, by default in a thread.
    """

    def __init__(self, registry: SchemaRegistry | None, start: Start = in_background) -> None:
        self._registry, self._start = registry, start
        self._lock = threading.Lock()
        self._known: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._pending: dict[tuple[str, str], Future[int]] = {}

    def id_of(self, subject: str, schema: str) -> int:
        """Return the id of a schema. The schema is registered under the subject if it is new.

        NotYetError if the registry has not yet answered. The caller must then repeat the call soon. DataError if there
        is no registry, or if the registry refuses the schema. RegistryUnavailableError if the registry is unavailable.
        LimitError if too many schemas wait for the registry. After an error, the next call asks the registry again.
        """
        if self._registry is None:
            raise DataError("result_format avro needs a schema registry, and none is set (PENSTOCK_SCHEMA_REGISTRY)")
        place = subject, schema
        with self._lock:
            if place in self._known:
                self._known.move_to_end(place)
                return self._known[place]
            asked = self._pending.get(place)
            if asked is None:
                if len(self._pending) >= MAX_PENDING:
                    self._pending = {place: asked for place, asked in self._pending.items() if not asked.done()}
                if len(self._pending) >= MAX_PENDING:
                    raise LimitError(f"{MAX_PENDING} schemas wait for {self._registry.name}")
                asked = self._pending[place] = Future()
                self._start(lambda: self._ask(place, asked))
            if not asked.done():
                raise NotYetError(f"{self._registry.name} has not answered yet")
            del self._pending[place]
            number = asked.result()
            self._known[place] = number
            if len(self._known) > MAX_KNOWN:
                self._known.popitem(last=False)
            return number

    def _ask(self, place: tuple[str, str], asked: Future[int]) -> None:
        assert self._registry is not None
        try:
            asked.set_result(self._registry.register(*place))
        except UnavailableError as error:
            asked.set_exception(RegistryUnavailableError(str(error)))
        except Exception as error:  # noqa: BLE001 - the caller of `id_of` gets it
            asked.set_exception(error)

    def close(self) -> None:
        """Close the connections to the registry."""
        if self._registry is not None:
            self._registry.close()
