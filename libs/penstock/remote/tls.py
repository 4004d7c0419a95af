"""TLS between stores and query engines (ADR 74), for control connections and for the data plane. Native code implements
TLS of the data plane.
"""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from penstock.core import _native as native
from penstock.errors import StorageError

if TYPE_CHECKING:
    import socket
    import ssl

    from penstock.term_ids.peer_certificates import PeerCertificates

_log = logging.getLogger(__name__)


class _Renewed:
    """A TLS context for one role, server or client. If the files have changed, the next connection has a new
    context.
    """

    def __init__(self, certificates: PeerCertificates, *, serves: bool) -> None:
        self._certificates, self._serves = certificates, serves
        self._lock = threading.Lock()
        self._stamp = certificates.stamp()
        self._context = self._made()

    def _made(self) -> ssl.SSLContext:
        made = self._certificates.server_context() if self._serves else self._certificates.client_context()
        if self._serves:
            made.num_tickets = 0  # each connection presents its certificate
        return made

    def get(self) -> ssl.SSLContext:
        """Return the context. While changed files are invalid, the previous context stays in use."""
        with self._lock:
            stamp = self._certificates.stamp()
            if stamp not in ((), self._stamp):
                self._stamp = stamp
                try:
                    self._context = self._made()
                except StorageError as error:
                    _log.warning("certificates are not reloaded: %s", error)
            return self._context


class PeerTls:
    """TLS with the certificates of this process, as server and as client. `identity`: the same certificates in the form
    that the native data plane uses. StorageError if a file cannot be used. DataPlaneError without OpenSSL. The object
    can be used from any thread.
    """

    def __init__(self, certificates: PeerCertificates) -> None:
        self._server = _Renewed(certificates, serves=True)
        self._client = _Renewed(certificates, serves=False)
        self.identity = native.TlsIdentity(str(certificates.ca), str(certificates.certificate), str(certificates.key))

    def accepted(self, stream: socket.socket) -> ssl.SSLSocket:
        """Wrap an accepted connection in TLS. In the later handshake, the client must present a certificate."""
        return self._server.get().wrap_socket(stream, server_side=True, do_handshake_on_connect=False)

    def opened(self, stream: socket.socket, host: str) -> ssl.SSLSocket:
        """Wrap an opened connection in TLS. In the later handshake, the server's certificate must name `host`."""
        return self._client.get().wrap_socket(stream, server_hostname=host, do_handshake_on_connect=False)
