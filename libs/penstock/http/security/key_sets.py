"""Key sets of issuers (JWKS, RFC 7517), read from a file or over HTTPS.

Only public keys of asymmetric signatures are used. The key determines the accepted algorithms, so a token cannot select
another algorithm.
"""

from __future__ import annotations

import json
import ssl
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import httpx
import jwt

from penstock.errors import PenstockError
from penstock.http.web_access import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import PublicKeyTypes

ALGORITHMS: Final[Mapping[tuple[str, str | None], tuple[str, ...]]] = {
    ("RSA", None): ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
"""Accepted algorithms by type and curve of a key."""
LEAST_RSA_BITS: Final = 2048
_PUBLIC_MEMBERS = ("kty", "n", "e", "crv", "x", "y")
_MAX_BYTES = 1 << 20
_MAX_KEYS = 256
_DISCOVERY = "/.well-known/openid-configuration"
_TIMEOUT_S = 5.0  # for each step of a request, and for its body


class IssuerError(PenstockError):
    """The settings of an issuer are invalid, or its keys cannot be read."""


@dataclass(frozen=True, slots=True)
class Key:
    """A public key, and the algorithms that it verifies."""

    public: PublicKeyTypes
    algorithms: tuple[str, ...]


KeySet = dict[str | None, Key]
"""Keys by their id (`kid`)."""


class KeyFile:
    """A key set in a file that can change."""

    refresh_s = 5.0
    retry_s = 1.0

    def __init__(self, path: Path) -> None:
        self._path = path

    def fetch(self) -> KeySet:
        """Read the key set. IssuerError if the key set cannot be used."""
        try:
            with self._path.open("rb") as file:
                content = file.read(_MAX_BYTES + 1)
        except OSError as error:
            raise IssuerError(f"{self._path}: {error.strerror}") from error
        return parsed(content, str(self._path))


class KeyUrl:
    """A key set at a URL. This URL is either given, or contained in the issuer's discovery document (OpenID
    Connect).
    """

    refresh_s = 300.0
    retry_s = 10.0

    def __init__(self, issuer: str, url: str | None = None, ca: Path | None = None) -> None:
        self._issuer, self._url, self._ca = issuer, url, ca

    def fetch(self) -> KeySet:
        """Request the key set. IssuerError if the key set cannot be used."""
        try:
            context = ssl.create_default_context(cafile=self._ca)
        except (OSError, ssl.SSLError) as error:
            raise IssuerError(f"{self._ca}: {error}") from error
        with httpx.Client(verify=context, timeout=_TIMEOUT_S) as client:
            url = self._url or self._discovered(client)
            return parsed(_get(client, url), url)

    def _discovered(self, client: httpx.Client) -> str:
        url = self._issuer.rstrip("/") + _DISCOVERY
        found = _json(_get(client, url), url)
        if found.get("issuer") != self._issuer:
            raise IssuerError(f"{url} is of the issuer {found.get('issuer')!r:.200}, not {self._issuer!r}")
        keys = found.get("jwks_uri")
        if not isinstance(keys, str) or not keys:
            raise IssuerError(f"{url} has no `jwks_uri`")
        if urlsplit(self._issuer).scheme == "https" and not keys.startswith("https://"):
            raise IssuerError(f"{url}: `jwks_uri` must begin with https://")
        check_url(keys)
        return keys


def check_url(url: str) -> None:
    """Check that nobody on the network can replace the keys of a URL. The URL must use HTTPS, or name the loopback
    interface. IssuerError if the URL does neither.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise IssuerError(f"{url} is no URL: {error}") from None
    if not host or parts.username is not None or parts.fragment:
        raise IssuerError(f"{url} is no URL of the form https://HOST/PATH")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(host)):
        raise IssuerError(f"{url} must begin with https:// (http:// is accepted on the loopback interface only)")


def parsed(content: bytes, place: str) -> KeySet:
    """Return the usable keys of a set. IssuerError if the set is malformed or has no usable key. `place`: the name of
    the set in errors.
    """
    if len(content) > _MAX_BYTES:
        raise IssuerError(f"{place} is longer than {_MAX_BYTES} bytes")
    entries = _json(content, place).get("keys")
    if not isinstance(entries, list) or len(entries) > _MAX_KEYS:
        raise IssuerError(f"{place} is no key set: expected `keys`, a list of at most {_MAX_KEYS} keys")
    found: KeySet = {}
    for entry in entries:
        key = _key(entry)
        if key is not None:
            found.setdefault(entry.get("kid"), key)
    if not found:
        raise IssuerError(f"{place} contains no key that can be used: RSA ({LEAST_RSA_BITS} bits or more), EC, Ed25519")
    return found


def _key(entry: Any) -> Key | None:
    """Return a key of a set. None if the key is not for signatures, or if the key's type or size is not accepted."""
    if not isinstance(entry, dict) or not isinstance(entry.get("kid"), str | None):
        return None
    kind, curve = entry.get("kty"), entry.get("crv")
    if not isinstance(kind, str) or not isinstance(curve, str | None) or entry.get("use", "sig") != "sig":
        return None
    operations = entry.get("key_ops", ["verify"])
    if not isinstance(operations, list) or "verify" not in operations:
        return None
    algorithms = ALGORITHMS.get((kind, curve), ())
    if entry.get("alg") is not None:
        algorithms = tuple(name for name in algorithms if name == entry["alg"])
    if not algorithms:
        return None
    try:
        public = jwt.PyJWK({name: entry[name] for name in _PUBLIC_MEMBERS if name in entry}, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError):
        return None
    if kind == "RSA" and public.key_size < LEAST_RSA_BITS:
        return None
    return Key(public, algorithms)


def _get(client: httpx.Client, url: str) -> bytes:
    """Return the body of a response. Redirects are not followed."""
    content, began = b"", time.monotonic()
    headers = {"accept": "application/json", "accept-encoding": "identity"}
    try:
        with client.stream("GET", url, headers=headers) as response:
            if response.status_code != httpx.codes.OK:
                raise IssuerError(f"{url} answers with status {response.status_code}")
            for part in response.iter_raw():
                content += part
                if len(content) > _MAX_BYTES or time.monotonic() - began > 2 * _TIMEOUT_S:
                    raise IssuerError(f"{url} is longer than {_MAX_BYTES} bytes, or too slow")
    except (httpx.HTTPError, httpx.InvalidURL, OSError, ssl.SSLError) as error:
        raise IssuerError(f"{url}: {error or type(error).__name__}") from error
    return content


def _json(content: bytes, place: str) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError):
        raise IssuerError(f"{place} is no JSON") from None
    if not isinstance(found, dict):
        raise IssuerError(f"{place} is no JSON object")
    return found
