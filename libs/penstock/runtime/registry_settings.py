"""Settings of services that use a schema registry."""

from __future__ import annotations

from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.errors import DataError, StorageError
from penstock.mapping.encodings.registry_access import registry_access
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.runtime.settings import ServiceSettings, SettingsError

if TYPE_CHECKING:
    from penstock.mapping.encodings.registry_access import RegistryAccess


class RegistrySettings(ServiceSettings):
    """Settings of services that use a schema registry."""

    schema_registry: str | None = Field(
        None,
        description="URL of the schema registry (Confluent's API): of messages in Avro and Protobuf for adaptors, of"
        " result records in Avro for coordinators",
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

    def registry(self) -> SchemaRegistry | None:
        """Return a client of the schema registry. None if there is no schema registry. SettingsError if the settings
        cannot be used.
        """
        access = self.registry_access()
        return None if access is None else SchemaRegistry(access)
