"""`penstock certificates`: makes a CA and certificates for development and small installations."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Final

import typer

from penstock.errors import DataError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.x509 import Certificate, CertificateBuilder, GeneralName

_CA_DAYS: Final = 3_650
_SKEW: Final = dt.timedelta(hours=1)  # tolerated difference to the clocks of machines that check certificates


def certificates(
    directory: Annotated[
        Path, typer.Argument(help="Directory of the CA (ca.crt, ca.key), which is created if missing.")
    ],
    name: Annotated[str, typer.Option(help="Name of the files: NAME.crt, NAME.key.")] = "tls",
    host: Annotated[
        list[str] | None, typer.Option(help="Host name or IP address of the process; may be repeated.")
    ] = None,
    days: Annotated[int, typer.Option(min=1, max=3_650, help="Validity in days.")] = 365,
) -> None:
    """Make a certificate and key with which a process authenticates to others (PENSTOCK_TLS_*), signed by your own CA.

    Do not copy ca.key to the machines of the cluster: any process that has it can join.
    """
    if name in ("", "ca") or "/" in name:
        raise DataError(f"--name {name}: a file name other than ca")
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority, key = _authority(directory)
    own, own_key = _issued(authority, key, name, host or ["localhost", "127.0.0.1", "::1"], days)
    _write(directory / f"{name}.crt", _pem(own), 0o644)
    _write(directory / f"{name}.key", _pem_of_key(own_key), 0o600)
    print(f"PENSTOCK_TLS_CA={directory / 'ca.crt'}")
    print(f"PENSTOCK_TLS_CERTIFICATE={directory / f'{name}.crt'}")
    print(f"PENSTOCK_TLS_KEY={directory / f'{name}.key'}")


def _authority(directory: Path) -> tuple[Certificate, EllipticCurvePrivateKey]:
    """Return the CA in a directory. If the directory has no CA, create one. DataError if the CA cannot be read."""
    from cryptography import x509  # noqa: PLC0415 - the cluster extra
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    certificate_file, key_file = directory / "ca.crt", directory / "ca.key"
    if certificate_file.exists() or key_file.exists():
        try:
            found = x509.load_pem_x509_certificate(certificate_file.read_bytes())
            key = load_pem_private_key(key_file.read_bytes(), None)
        except (ValueError, TypeError) as error:
            raise DataError(f"{directory}: ca.crt and ca.key cannot be read: {error}") from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or key.public_key() != found.public_key():
            raise DataError(f"{key_file} is not the key of {certificate_file}, made by this command")
        return found, key
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name("Penstock CA")
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    made = _builder(subject, subject, key, key, _CA_DAYS)
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    signed = _signed(made.add_extension(usage, critical=True), key)
    _write(key_file, _pem_of_key(key), 0o600)
    _write(certificate_file, _pem(signed), 0o644)
    return signed, key


def _issued(
    authority: Certificate, key: EllipticCurvePrivateKey, name: str, hosts: list[str], days: int
) -> tuple[Certificate, EllipticCurvePrivateKey]:
    """Return a certificate for servers and clients, and its key."""
    from cryptography import x509  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415
    from cryptography.x509.oid import ExtendedKeyUsageOID  # noqa: PLC0415

    own = ec.generate_private_key(ec.SECP256R1())
    purposes = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]
    made = _builder(_name(name), authority.subject, own, key, days)
    made = made.add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    made = made.add_extension(x509.SubjectAlternativeName([_host(host) for host in hosts]), critical=False)
    made = made.add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
    return _signed(made, key), own


def _builder(
    subject: object, issuer: object, own: EllipticCurvePrivateKey, signing: EllipticCurvePrivateKey, days: int
) -> CertificateBuilder:
    from cryptography import x509  # noqa: PLC0415

    now = dt.datetime.now(dt.UTC)
    made = x509.CertificateBuilder(
        issuer_name=issuer,  # type: ignore[arg-type]
        subject_name=subject,  # type: ignore[arg-type]
        public_key=own.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _SKEW,
        not_valid_after=now + dt.timedelta(days=days),
    )
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
    signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
    return made.add_extension(signer, critical=False)


def _signed(made: CertificateBuilder, key: EllipticCurvePrivateKey) -> Certificate:
    from cryptography.hazmat.primitives.hashes import SHA256  # noqa: PLC0415

    return made.sign(key, SHA256())


def _name(common: str) -> object:
    from cryptography import x509  # noqa: PLC0415
    from cryptography.x509.oid import NameOID  # noqa: PLC0415

    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _host(text: str) -> GeneralName:
    from cryptography import x509  # noqa: PLC0415

    try:
        return x509.IPAddress(ipaddress.ip_address(text))
    except ValueError:
        return x509.DNSName(text)


def _pem(made: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding  # noqa: PLC0415

    return made.public_bytes(Encoding.PEM)


def _pem_of_key(key: EllipticCurvePrivateKey) -> bytes:
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415

    plain = serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)


def _write(path: Path, content: bytes, mode: int) -> None:
    """Replace a file. The new file gets its permissions (`mode`) before it gets its content."""
    temporary = path.with_name(f".{path.name}.new")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
    temporary.replace(path)
