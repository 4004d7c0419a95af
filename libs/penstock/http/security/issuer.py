"""JWTs of an OpenID Connect issuer as bearer tokens (ADR 67).

The issuer's public keys verify the signature of a JWT. The subject of the JWT gives the name `oidc:SUBJECT`, and a
claim gives the role.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import jwt

from penstock.errors import UnavailableError
from penstock.http.security.identities import NoRoleError, RefusedTokenError
from penstock.http.security.key_sets import ALGORITHMS, IssuerError, KeyFile, KeyUrl, check_url
from penstock.http.security.roles import Identity, Role
from penstock.http.security.signing_keys import SigningKeys

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from penstock.http.security.key_sets import Key
    from penstock.http.security.signing_keys import KeySource

MAX_TOKEN_CHARS: Final = 16 << 10
NAMES: Final = "oidc:"
"""Prefix of the names of subjects. No name of a static token has a colon."""
_MAX_SUBJECT = 255  # OpenID Connect Core 1.0, section 2
_MAX_LEEWAY_S = 300.0
_WAIT_S = 5.0  # maximum time that a request waits for a fetch of keys
_ACCEPTED = frozenset(name for names in ALGORITHMS.values() for name in names)
_REASONS: list[tuple[type[jwt.PyJWTError], str]] = [
    (jwt.ExpiredSignatureError, "the token has expired"),
    (jwt.ImmatureSignatureError, "the token is not valid yet"),
    (jwt.InvalidAudienceError, "the token is for another audience"),
    (jwt.InvalidIssuerError, "the token is of another issuer"),
    (jwt.InvalidSignatureError, "the signature of the token is not valid"),
    (jwt.InvalidAlgorithmError, "the signature of the token is not valid: its key is for another algorithm"),
]
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class IssuerSettings:
    """An issuer, and the conditions on its tokens.

    `url`: the issuer's URL, as in the claim `iss`. `audience`: a value that the claim `aud` must contain. `roles`: the
    role for each value of the claim `role_claim`. `jwks`: file or URL of the key set; None means the URL in the
    issuer's discovery document. `ca`: CA (PEM) of the issuer's certificate; None means the CAs of the system.
    `leeway_s`: tolerated difference of clocks in s. `rate`, `max_body_bytes`: limits of each subject, see `Identity`.
    """

    url: str
    audience: str
    roles: Mapping[str, Role]
    role_claim: str = "roles"
    jwks: str | None = None
    ca: Path | None = None
    leeway_s: float = 30.0
    rate: float | None = None
    max_body_bytes: int | None = None

    def check(self) -> None:
        """Check the settings, and the files that the settings name. IssuerError if a setting or file cannot be used."""
        if not self.audience:
            raise IssuerError("the audience is missing: tokens for other services would be accepted")
        if not self.roles:
            raise IssuerError("no role is given for any value of the claim of roles")
        if not 0 <= self.leeway_s <= _MAX_LEEWAY_S:
            raise IssuerError(f"the leeway must be 0 to {_MAX_LEEWAY_S:g} seconds")
        if self.ca is not None and not self.ca.is_file():
            raise IssuerError(f"{self.ca} is no file")
        source = self.source()
        if isinstance(source, KeyFile):
            source.fetch()
        else:
            check_url(self.jwks or self.url)

    def source(self) -> KeyFile | KeyUrl:
        """Return the source of the keys."""
        if self.jwks is not None and "://" not in self.jwks:
            return KeyFile(Path(self.jwks))
        return KeyUrl(self.url, self.jwks, self.ca)


def roles_of(pairs: Iterable[str]) -> dict[str, Role]:
    """Parse `VALUE=ROLE` pairs into a dict from claim value to role. IssuerError for a malformed pair."""
    found: dict[str, Role] = {}
    for pair in pairs:
        value, _, role = pair.rpartition("=")
        if not value or role.upper() not in Role.__members__:
            raise IssuerError(f"{pair!r} is not VALUE=ROLE, with the role read, write or admin")
        found[value] = Role[role.upper()]
    return found


class Issuer:
    """Checks the tokens of an issuer. The issuer need not respond when this object is created. Until the issuer's keys
    have been read, `owner` raises UnavailableError.
    """

    def __init__(self, settings: IssuerSettings, source: KeySource | None = None) -> None:
        settings.check()
        self._settings = settings
        self._keys = SigningKeys(source or settings.source())

    def last_error(self) -> str | None:
        """Return the reason why no token can be checked, or None. None also if the last fetch of keys has failed, but
        former keys exist.
        """
        return None if len(self._keys) else self._keys.last_error

    async def owner(self, token: str) -> Identity:
        """Return the owner of a token, see `Identities`."""
        if len(token) > MAX_TOKEN_CHARS:
            raise RefusedTokenError(f"the token has more than {MAX_TOKEN_CHARS} characters")
        key = await self._key(_key_id(token))
        claims = self._claims(token, key)
        subject = claims["sub"]
        if not 0 < len(subject) <= _MAX_SUBJECT or not subject.isprintable():
            raise RefusedTokenError(f"the claim `sub` must have 1 to {_MAX_SUBJECT} printable characters")
        name = f"{NAMES}{subject}"
        values = _values(claims, self._settings.role_claim)
        roles = [self._settings.roles[value] for value in values if value in self._settings.roles]
        if not roles:
            reason = f"{name} has no role: no value of the claim `{self._settings.role_claim}` gives one"
            raise NoRoleError(reason, name)
        settings, expires_s = self._settings, float(claims["exp"]) + self._settings.leeway_s
        return Identity(name, max(roles), settings.rate, settings.max_body_bytes, expires_s)

    def close(self) -> None:
        """Stop fetching keys."""
        self._keys.close()

    async def _key(self, kid: str | None) -> Key:
        """Return the key that a token names. If the key is unknown, fetches the keys, unless the last fetch is too
        recent.
        """
        key = self._keys.find(kid)
        if key is None and (fetch := self._keys.refetch()) is not None:
            done, _ = await asyncio.wait([asyncio.wrap_future(fetch)], timeout=_WAIT_S)
            key = self._keys.find(kid)
            if key is None and not done:
                raise UnavailableError("the issuer does not answer, and the key of the token is not known: retry later")
        if key is not None:
            return key
        if self._keys.last_error is not None:  # the error is in the log; the caller need not see it
            raise UnavailableError(
                "the issuer's keys cannot be read, and the key of the token is not known: retry later"
            )
        wait_s = max(0.0, self._keys.next_fetch_s())
        raise RefusedTokenError(
            f"the key of the token is not among the issuer's; new keys are fetched again after {wait_s:.0f} s"
        )

    def _claims(self, token: str, key: Key) -> dict[str, Any]:
        settings = self._settings
        try:
            return jwt.decode(
                token,
                key.public,  # type: ignore[arg-type]  # of a kind that key_sets accepts
                algorithms=key.algorithms,
                audience=settings.audience,
                issuer=settings.url,
                leeway=settings.leeway_s,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except jwt.MissingRequiredClaimError as error:
            raise RefusedTokenError(f"the token has no claim `{error.claim}`") from None
        except jwt.PyJWTError as error:
            reason = next((text for kind, text in _REASONS if isinstance(error, kind)), "the token is malformed")
            raise RefusedTokenError(reason) from None
        except (ValueError, TypeError, OverflowError, RecursionError):
            raise RefusedTokenError("the token is malformed") from None


def _key_id(token: str) -> str | None:
    """Return the key id in a token's header, or None if the header has no key id. The header is not verified yet.
    RefusedTokenError if the token is no JWT, or if its algorithm is not accepted.
    """
    try:
        header = jwt.get_unverified_header(token)
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise RefusedTokenError("the token is not valid: it is no JWT") from None
    algorithm, kid = header.get("alg"), header.get("kid")
    if not isinstance(algorithm, str) or algorithm not in _ACCEPTED:
        raise RefusedTokenError(f"the token's algorithm is not accepted: use one of {', '.join(sorted(_ACCEPTED))}")
    if not isinstance(kid, str | None):
        raise RefusedTokenError("the token is malformed")
    return kid


def _values(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return the values of a claim. The claim is a list of strings, or one string of values separated by spaces.

    If a name has dots and no claim has exactly this name, the name is the path of a claim inside other claims.
    """
    found: Any = claims
    for step in (name,) if name in claims else name.split("."):
        found = found.get(step) if isinstance(found, dict) else None
    if isinstance(found, str):
        return found.split()
    return [value for value in found if isinstance(value, str)] if isinstance(found, list) else []
