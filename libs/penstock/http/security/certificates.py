"""TLS of an HTTP server, with certificates that can be replaced while the server runs."""

from __future__ import annotations

import ssl
import threading
from dataclasses import dataclass
from pathlib import Path  # noqa: TC003 - a field of a dataclass
from typing import TYPE_CHECKING, Final

from penstock.errors import StorageError

if TYPE_CHECKING:
    import logging

CHECK_S: Final = 5.0
"""Interval in seconds at which the files are checked for changes."""


@dataclass(frozen=True, slots=True)
class Certificates:
    """Files of a server's certificate chain and key (PEM). `client_ca`: the CA of clients' certificates. If `client_ca`
    is given, clients need a certificate of this CA.
    """

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def context(self) -> ssl.SSLContext:
        """Return a context for TLS 1.2 or later. StorageError if a file cannot be used."""
        made = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        made.minimum_version = ssl.TLSVersion.TLSv1_2
        self.load(made)
        if self.client_ca is not None:
            try:
                made.load_verify_locations(self.client_ca)
            except (OSError, ssl.SSLError) as error:
                raise StorageError(f"{self.client_ca}: {error}") from error
            made.verify_mode = ssl.CERT_REQUIRED
        return made

    def load(self, context: ssl.SSLContext) -> None:
        """Load certificate chain and key into a context, for new connections. StorageError if the files cannot be
        used.
        """
        try:
            context.load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            raise StorageError(f"{self.certificate} and {self.key}: {error}") from error

    def stamp(self) -> tuple[int, ...]:
        """Return numbers that are different after a change of the certificate chain or key. Empty while a file is
        missing.
        """
        try:
            status = [path.stat() for path in (self.certificate, self.key)]
        except OSError:
            return ()
        return tuple(number for found in status for number in (found.st_ino, found.st_mtime_ns, found.st_size))


class Renewal:
    """Watches certificate files in a thread, and loads changed files. While the new certificates are invalid, the old
    certificates stay in use.
    """

    def __init__(self, certificates: Certificates, context: ssl.SSLContext, logger: logging.Logger) -> None:
        self._certificates, self._context, self._logger = certificates, context, logger
        self._stopping = threading.Event()
        self._stamp = certificates.stamp()
        self._thread = threading.Thread(target=self._run, name="certificates", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(CHECK_S):
            stamp = self._certificates.stamp()
            if stamp in ((), self._stamp):
                continue
            self._stamp = stamp
            try:
                self._certificates.load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER))  # a failure would break the context
                self._certificates.load(self._context)
            except StorageError as error:
                self._logger.warning("certificates are not reloaded: %s", error)
            else:
                self._logger.info("certificates reloaded")

    def stop(self) -> None:
        """Stop watching."""
        self._stopping.set()
        self._thread.join()
