"""Checks of secrets, tokens and certificates."""

from __future__ import annotations

import ssl
import time
from typing import TYPE_CHECKING, Final

from penstock.doctor.findings import failure, ok, warning
from penstock.errors import StorageError
from penstock.http.security import TokenError, TokenFile

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.doctor.findings import Finding
    from penstock.http.security.certificates import Certificates

LEAST_SECRET_BYTES: Final = 16
_SOON_S: Final = 14 * 86_400.0


def secret(path: Path) -> Iterator[Finding]:
    """Check the secret that stores and query engines share."""
    try:
        size = len(path.read_bytes().strip())
    except OSError as error:
        remedy = f"PENSTOCK_SECRET_FILE names a file of {LEAST_SECRET_BYTES} random bytes or more"
        yield failure("secret", f"{path}: {error.strerror}", remedy)
        return
    if size < LEAST_SECRET_BYTES:
        remedy = f"head -c 32 /dev/urandom | base64 > {path}, the same file on all machines"
        yield failure("secret", f"{path} has {size} bytes", remedy)
    else:
        yield from _private("secret", path, f"{size} bytes")


def tokens(path: Path) -> Iterator[Finding]:
    """Check the file of tokens."""
    try:
        TokenFile(path)
    except TokenError as error:
        yield failure("tokens", str(error), "penstock token NAME ROLE makes a line")
        return
    yield from _private("tokens", path, "readable")


def certificate(files: Certificates, settings: str = "PENSTOCK_HTTP") -> Iterator[Finding]:
    """Check that a certificate and its key belong together, and that the certificate does not expire soon. `settings`:
    the common prefix of the environment variables that name the two files.
    """
    try:
        files.context()
    except StorageError as error:
        yield failure("certificate", str(error), f"{settings}_CERTIFICATE and _KEY: PEM files that belong together")
        return
    found = ssl._ssl._test_decode_cert(str(files.certificate))  # type: ignore[attr-defined] # noqa: SLF001 - no public parser
    left_s = ssl.cert_time_to_seconds(str(found["notAfter"])) - time.time()
    text = f"{files.certificate} expires on {found['notAfter']}"
    if left_s <= 0:
        yield failure("certificate", text, "renew it: running services load the new files within seconds")
    elif left_s < _SOON_S:
        yield warning("certificate", text, "renew it: running services load the new files within seconds")
    else:
        yield ok("certificate", text)


def _private(check: str, path: Path, text: str) -> Iterator[Finding]:
    mode = path.stat().st_mode & 0o777
    if mode & 0o007:
        yield warning(check, f"every user can read {path} (mode {mode:04o})", f"chmod 600 {path}")
    else:
        yield ok(check, f"{path}: {text}")
