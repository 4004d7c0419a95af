"""The access to a registry with the schemas of messages in a binary format."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How a process connects to the registry.

    url: the registry, for example https://registry:8081. credentials: a file with USER:PASSWORD, or with a bearer
    token. ca: CA certificates (PEM) for https. None: the system's CA certificates.
    """

    url: str
    credentials: Path | None = None
    ca: Path | None = None

    @classmethod
    def of(cls, given: str | RegistryAccess) -> RegistryAccess:
        """Return the access for a URL. If the argument is already an access, return this access."""
        return given if isinstance(given, RegistryAccess) else cls(given)


def registry_access(url: str | None, credentials: Path | None, ca: Path | None) -> RegistryAccess | None:
    """Return the access that a user's settings describe. None if no setting is given. DataError if settings are given
    without the URL.
    """
    if url is None:
        if credentials is not None or ca is not None:
            raise DataError("settings of a schema registry are given, but not its URL")
        return None
    return RegistryAccess(url, credentials, ca)
