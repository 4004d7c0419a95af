"""The sender of a request: an interface that finds the owner of a token, and the errors of this interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from penstock.errors import AccessError, PenstockError

if TYPE_CHECKING:
    from penstock.http.security.roles import Identity


class RefusedTokenError(PenstockError):
    """A token is not valid. The message gives the reason, and contains no part of the token."""


class NoRoleError(AccessError):
    """The owner of a valid token has no role. `name`: the name of the owner."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message)
        self.name = name


class Identities(Protocol):
    """Finds the owner of a token."""

    async def owner(self, token: str) -> Identity:
        """Return the owner of a token. RefusedTokenError for an invalid token, NoRoleError for an owner without a
        role, UnavailableError if the token cannot be checked now.
        """
