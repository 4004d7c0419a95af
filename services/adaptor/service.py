"""The process of the plain adaptor."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING, Protocol

from pydantic import Field

from penstock.acls import Principal
from penstock.errors import DataError, StorageError
from penstock.mapping.encodings.registry_access import registry_access
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClientSettings, GroupSettings, topics_of
from penstock.runtime.metrics import Tally
from penstock.runtime.settings import SettingsError
from penstock.services.adaptor.adaptor import Adaptor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from penstock.mapping.encodings.registry_access import RegistryAccess
    from penstock.runtime.metrics import Metrics


class AdaptorSettings(ClientSettings, GroupSettings):
    """Settings of an adaptor."""

    poll_ms: int = Field(10, ge=1, le=10_000, description="maximum time that a step waits for input")
    schema_registry: str | None = Field(
        None,
        description="URL of the schema registry (Confluent's API) for messages in Avro and Protobuf",
    )
    schema_registry_credentials: Path | None = Field(
        None, description="file with USER:PASSWORD, or with a bearer token, for the schema registry"
    )
    schema_registry_ca: Path | None = Field(
        None, description="CA certificates (PEM) of the schema registry; none = those of the system"
    )

    def registry_access(self) -> RegistryAccess | None:
        """Return the access of this process to the schema registry. None if there is no schema registry. SettingsError
        if the settings cannot be used.
        """
        try:
            access = registry_access(self.schema_registry, self.schema_registry_credentials, self.schema_registry_ca)
            if access is not None:
                SchemaRegistry(access).close()
        except (DataError, StorageError) as error:
            raise SettingsError(f"PENSTOCK_SCHEMA_REGISTRY: {error}") from error
        return access


class Counting(Protocol):
    """Counters of an adaptor. Threads other than the adaptor's can read the counters."""

    events: int
    tuples: int
    dead: int
    discarded: int


def gauges(adaptor: Counting, lag: Callable[[], Mapping[str, int]], metrics: Metrics) -> Callable[[], None]:
    """Return the function that updates an adaptor's metrics."""
    events, tuples, dead = Tally(metrics.events), Tally(metrics.tuples), Tally(metrics.dead_letters)
    discarded = Tally(metrics.discarded)

    def observe() -> None:
        events.reach(adaptor.events)
        tuples.reach(adaptor.tuples)
        dead.reach(adaptor.dead)
        discarded.reach(adaptor.discarded)
        for topic, records in lag().items():
            metrics.lag.labels(topic).set(records)

    return observe


def open_adaptor(context: Context[AdaptorSettings]) -> Adaptor:
    """Open the adaptor as a member of the adaptors' group."""
    topics_of(context, Principal.adaptor)
    terms = context.settings.terms()
    access = context.settings.registry_access()
    registry = None if access is None else SchemaRegistry(access)
    adaptor = Adaptor(context.log, context.names, terms, context.settings.group, registry=registry)
    context.observers.append(gauges(adaptor.adapting, adaptor.lag, context.metrics))
    return adaptor


def main() -> int:
    """Run the service."""
    return run("adaptor", AdaptorSettings, open_adaptor)


if __name__ == "__main__":
    sys.exit(main())
