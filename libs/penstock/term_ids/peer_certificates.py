"""Certificates with which the cluster's processes authenticate to each other (mutual TLS, ADR 71 and 74).

A process has a certificate, a key, and the CA that has signed the certificates of the other processes. A process uses
the same files as a server and as a client.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from penstock.errors import StorageError
from penstock.http.security.certificates import Certificates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CA: Final = "PENSTOCK_TLS_CA"
CERTIFICATE: Final = "PENSTOCK_TLS_CERTIFICATE"
KEY: Final = "PENSTOCK_TLS_KEY"
_ROUNDS: Final = 8  # of a handshake in memory; TLS 1.3 needs three


@dataclass(frozen=True, slots=True)
class PeerCertificates:
    """Files in PEM: the CA of the peers' certificates, and the certificate chain and key of this process."""

    ca: Path
    certificate: Path
    key: Path

    @classmethod
    def of(cls, ca: Path | None, certificate: Path | None, key: Path | None) -> PeerCertificates | None:
        """Return the files, or None if no file is given. StorageError if only some of the files are given."""
        if ca is None and certificate is None and key is None:
            return None
        if ca is None or certificate is None or key is None:
            given = {CA: ca, CERTIFICATE: certificate, KEY: key}
            missing = ", ".join(name for name, path in given.items() if path is None)
            raise StorageError(f"{CA}, {CERTIFICATE} and {KEY} are needed together: {missing} is not set")
        return cls(ca, certificate, key)

    @classmethod
    def of_environment(cls, variables: Mapping[str, str] = os.environ) -> PeerCertificates | None:
        """Return the files that environment variables name. This method is for programs that are not services."""
        ca, certificate, key = (variables.get(name) for name in (CA, CERTIFICATE, KEY))
        return cls.of(*(None if not path else Path(path) for path in (ca, certificate, key)))

    @property
    def served(self) -> Certificates:
        """The files of a server that requires certificates of its clients."""
        return Certificates(self.certificate, self.key, self.ca)

    def server_context(self, protocols: Sequence[str] = ()) -> ssl.SSLContext:
        """Return a TLS 1.3 context for servers. `protocols`: the protocols for ALPN. StorageError if a file cannot be
        used.
        """
        self.check(serves=True)
        made = self.served.context()
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        if protocols:
            made.set_alpn_protocols(protocols)
        return made

    def client_context(self) -> ssl.SSLContext:
        """Return a TLS 1.3 context for clients. Servers must present a certificate for their host name. StorageError if
        a file cannot be used.
        """
        self.check(serves=False)
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        made.minimum_version = ssl.TLSVersion.TLSv1_3
        self._load_ca(made)
        self._load_own(made)
        return made

    def client_options(self) -> dict[str, Any]:
        """Return the arguments with which a Flight client connects. StorageError if a file cannot be used."""
        self.check(serves=False)
        return {
            "tls_root_certs": _content(CA, self.ca),
            "cert_chain": _content(CERTIFICATE, self.certificate),
            "private_key": _content(KEY, self.key),
        }

    def check(self, *, serves: bool, host: str | None = None) -> None:
        """Check that key and certificate belong together, and that the CA accepts the certificate now. `serves`:
        whether the certificate is for a server (True) or for a client. `host`: the name or IP address by which clients
        reach the server. The certificate must contain this name or address. StorageError if a check fails. The message
        names the setting whose file is wrong.
        """
        own = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if serves else ssl.PROTOCOL_TLS_CLIENT)
        peer = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT if serves else ssl.PROTOCOL_TLS_SERVER)
        for context in (own, peer):
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        self._load_ca(peer)
        self._load_own(own)
        peer.verify_mode = ssl.CERT_REQUIRED
        peer.check_hostname = host is not None
        if not serves:
            self._load_own(peer)  # a server needs some certificate; this client does not check it
        try:
            _shake_hands(*((own, peer) if serves else (peer, own)), host)
        except ssl.SSLCertVerificationError as error:
            raise StorageError(
                f"{CERTIFICATE}: {CA} does not accept {self.certificate}: {error.verify_message}"
            ) from error
        except ssl.SSLError as error:
            raise StorageError(f"{CERTIFICATE}: {self.certificate}: {error}") from error

    def _load_ca(self, context: ssl.SSLContext) -> None:
        _certificates(CA, self.ca, context)

    def _load_own(self, context: ssl.SSLContext) -> None:
        _certificates(CERTIFICATE, self.certificate, ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        _content(KEY, self.key)
        try:
            context.load_cert_chain(self.certificate, self.key, password=lambda: "")  # otherwise OpenSSL would ask
        except ssl.SSLError as error:
            if error.reason in ("KEY_VALUES_MISMATCH", "KEY_TYPE_MISMATCH"):
                raise StorageError(f"{KEY}: {self.key} is not the key of {CERTIFICATE}, {self.certificate}") from error
            raise StorageError(f"{KEY}: {self.key} has no private key in PEM without a password") from error

    def stamp(self) -> tuple[int, ...]:
        """Return numbers that identify the versions of the certificate file and the key file. A change of one of these
        files changes the numbers. The result is empty while one of the files is missing.
        """
        return self.served.stamp()


def _content(setting: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{setting}: {path}: {error.strerror}") from error


def _certificates(setting: str, path: Path, context: ssl.SSLContext) -> None:
    """Add the certificates in a file to the trusted certificates of a context."""
    try:
        context.load_verify_locations(cadata=_content(setting, path).decode("ascii"))
    except (UnicodeDecodeError, ssl.SSLError) as error:
        raise StorageError(f"{setting}: {path} has no certificate in PEM") from error


def _shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str | None) -> None:
    """Perform a TLS handshake between two contexts in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_side=False, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(_ROUNDS):
        for side in list(sides):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            sides.remove(side)
