"""Static tokens in a file that can change while the service runs.

One token per line: `NAME ROLE sha256:DIGEST [rate=N] [max_body_mb=N]`. The file contains digests, and therefore does
not reveal the tokens. The command `penstock token` creates a token and its line.
"""

from __future__ import annotations

import hashlib
import logging
import re
import secrets
import threading
import time
from typing import TYPE_CHECKING, Final

from penstock.errors import PenstockError
from penstock.http.security.identities import RefusedTokenError
from penstock.http.security.roles import Identity, Role

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CHECK_S: Final = 1.0
"""Interval in seconds at which the file is checked for changes."""
_BYTES = 32
_MAX_FILE_BYTES = 1 << 20
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_NAME = re.compile(r"[A-Za-z0-9._@-]{1,128}")
_log = logging.getLogger(__name__)


class TokenError(PenstockError):
    """A file of tokens or the name for a new token is unusable. The message names the file, and the line if a line is
    malformed.
    """


def new_token(name: str, role: Role) -> tuple[str, str]:
    """Return a random token of 256 bits, and its line for the file. TokenError for a malformed name."""
    if not _NAME.fullmatch(name):
        raise TokenError(f"{name!r} is no name of a token: 1 to 128 of A-Z, a-z, 0-9, '.', '_', '@' and '-'")
    token = secrets.token_urlsafe(_BYTES)
    return token, f"{name} {role.name.lower()} sha256:{_digest(token)}"


class TokenFile:
    """The tokens of a file. Before a check of a token, this object tests whether the file has changed, but at most once
    per `CHECK_S` seconds. If the file has changed, this object reads the file again.

    Malformed new content is not applied: the former tokens stay valid, and `last_error` gives the reason.
    """

    def __init__(self, path: Path, now: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._now = now
        self._lock = threading.Lock()
        self._stamp = self._stamp_of_file()
        self._identities = _read(path)
        self._checked = now()
        self.last_error: str | None = None

    def identify(self, token: str) -> Identity | None:
        """Return the owner of a token, or None. Any thread can call this method."""
        self._reload()
        return self._identities.get(_digest(token))

    async def owner(self, token: str) -> Identity:
        """Return the owner of a token, see `Identities`."""
        found = self.identify(token)
        if found is None:
            raise RefusedTokenError("the token is not valid")
        return found

    def _reload(self) -> None:
        if self._now() - self._checked < CHECK_S:
            return
        with self._lock:
            if self._now() - self._checked < CHECK_S:
                return
            self._checked = self._now()
            try:
                stamp = self._stamp_of_file()
                if stamp == self._stamp:
                    return
                self._identities = _read(self._path)
            except TokenError as error:
                if str(error) != self.last_error:
                    _log.warning("tokens are not reloaded: %s", error)
                self.last_error = str(error)
            else:
                self._stamp, self.last_error = stamp, None
                _log.info("tokens reloaded: %d", len(self._identities))

    def _stamp_of_file(self) -> tuple[int, int, int]:
        """Return numbers that are different after a change of the file. If the path is a link, the numbers are also
        different after the link points to another file.
        """
        try:
            status = self._path.stat()
        except OSError as error:
            raise TokenError(f"{self._path}: {error.strerror}") from error
        return status.st_ino, status.st_mtime_ns, status.st_size


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _read(path: Path) -> dict[str, Identity]:
    """Return the identity of each token, by the token's digest. TokenError, with the line if a line is malformed."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise TokenError(f"{path}: {error.strerror}") from error
    if len(content) > _MAX_FILE_BYTES:
        raise TokenError(f"{path} has more than {_MAX_FILE_BYTES} bytes")
    found: dict[str, Identity] = {}
    for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            digest, identity = _entry(words)
        except ValueError as error:
            raise TokenError(f"{path}, line {number}: {error}") from None
        if digest in found:
            raise TokenError(f"{path}, line {number}: the token of {found[digest].name} again")
        found[digest] = identity
    if not found:
        raise TokenError(f"{path} contains no token: `penstock token NAME ROLE` makes one")
    return found


def _entry(words: list[str]) -> tuple[str, Identity]:
    """Return the digest and identity of a line. ValueError if the line is malformed. The message never contains a
    token.
    """
    if len(words) < 3:
        raise ValueError("expected NAME ROLE sha256:DIGEST")
    name, role, digest, *limits = words
    if not _NAME.fullmatch(name):
        raise ValueError("the name may have A-Z, a-z, 0-9, '.', '_', '@' and '-'")
    if role.upper() not in Role.__members__:
        raise ValueError("the role must be read, write or admin")
    found = _DIGEST.fullmatch(digest)
    if found is None:
        raise ValueError("expected sha256: and 64 hexadecimal digits, not the token itself")
    rate, body = None, None
    for limit in limits:
        key, _, value = limit.partition("=")
        number = float(value) if re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,3})?", value) else 0.0
        if key not in ("rate", "max_body_mb") or number <= 0:
            raise ValueError("limits are rate=REQUESTS_PER_SECOND and max_body_mb=MIB, both above 0")
        if key == "rate":
            rate = number
        else:
            body = int(number * (1 << 20))
    return found[1], Identity(name, Role[role.upper()], rate, body)
