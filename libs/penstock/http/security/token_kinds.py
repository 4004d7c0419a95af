"""Selects the object that checks the tokens of requests: a file of static tokens, an issuer of JWTs, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.http.security.identities import RefusedTokenError

if TYPE_CHECKING:
    from penstock.http.security.identities import Identities
    from penstock.http.security.issuer import Issuer
    from penstock.http.security.roles import Identity
    from penstock.http.security.tokens import TokenFile

_DOTS_OF_A_JWT = 2


class TokenKinds:
    """Accepts the static tokens of a file, and the JWTs of an issuer."""

    def __init__(self, file: TokenFile, issuer: Issuer) -> None:
        self._file, self._issuer = file, issuer

    async def owner(self, token: str) -> Identity:
        """Return the owner of a token, see `Identities`."""
        static = self._file.identify(token)
        if static is not None:
            return static
        if token.count(".") != _DOTS_OF_A_JWT:
            raise RefusedTokenError("the token is not valid")
        return await self._issuer.owner(token)


def identities_of(file: TokenFile | None, issuer: Issuer | None) -> Identities | None:
    """Return the object that checks the tokens of requests; None if requests are not authenticated."""
    if file is None or issuer is None:
        return issuer if file is None else file
    return TokenKinds(file, issuer)
