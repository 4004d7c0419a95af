"""Where the schemas of messages in a binary format are looked up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class RegistryAccess:
    """How a process reaches the registry.

    url: the registry, for example https://registry:8081. credentials: a file with USER:PASSWORD, or with a bearer
    token. ca: CA certificates (PEM) for https; None: those of the system.
    """

    url: str
    credentials: Path | None = None
    ca: Path | None = None

    @classmethod
    def of(cls, given: str | RegistryAccess) -> RegistryAccess:
        """Return the access by a URL, or the access itself."""
        return given if isinstance(given, RegistryAccess) else cls(given)


def registry_access(url: str | None, credentials: Path | None, ca: Path | None) -> RegistryAccess | None:
    """Return the access that a user's settings give; None without a URL. DataError if only the other settings are
    given.
    """
    if url is None:
        if credentials is not None or ca is not None:
            raise DataError("settings of a schema registry are given, but not its URL")
        return None
    return RegistryAccess(url, credentials, ca)
