"""Settings of a service: environment variables `PENSTOCK_*`, and the TOML file that PENSTOCK_CONFIG names. The
variables take precedence.

Every librdkafka property can be set. For example, the variable `PENSTOCK_KAFKA_SASL_PASSWORD` or the entry
`sasl.password` in the file's table `kafka` sets `sasl.password`. TLS and SASL therefore need no settings of their own.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from pydantic import Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)
from pydantic_settings import (
    SettingsError as _SourceError,
)

from penstock.errors import PenstockError
from penstock.http.security import TokenError, TokenFile
from penstock.http.security.certificates import Certificates
from penstock.http.web_access import Access, is_loopback
from penstock.http.web_limits import WebLimits
from penstock.runtime.loop import LEAVE_S

if TYPE_CHECKING:
    from penstock.http.security.issuer import IssuerSettings

_PREFIX = "PENSTOCK_"
_KAFKA = f"{_PREFIX}KAFKA_"
_FILE = f"{_PREFIX}CONFIG"
_EVERYWHERE = ("0.0.0.0", "::", "")  # noqa: S104 - compared with, not listened on


class SettingsError(PenstockError):
    """Settings are missing or invalid. The message names each of these settings."""


class ServiceSettings(BaseSettings):
    """Settings of every service."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, extra="ignore", frozen=True)

    bootstrap_servers: str = Field(min_length=1, description="Kafka brokers: host:port, separated by commas")
    prefix: str = Field(
        "penstock",
        pattern=r"^[A-Za-z0-9_-]{1,64}$",
        description="first part of every topic name; clusters on the same brokers need different prefixes",
    )
    shards: int = Field(
        4,
        ge=1,
        le=1024,
        description="partitions of the shards topic; all services use the same number, and it never changes",
    )
    instance: str = Field(
        default_factory=socket.gethostname,
        min_length=1,
        description="name of this process among the processes of its service",
    )
    http_host: str = Field("127.0.0.1", description="address on which health, metrics and HTTP interfaces listen")
    http_port: int = Field(
        0, ge=0, le=65_535, description="port of these interfaces; 0 = any free port, which the log names"
    )
    http_allow_hosts: str = Field(
        "", description="host names, separated by commas, that the Host header may contain; empty = all (ADR 62)"
    )
    http_allow_origins: str = Field(
        "", description="origins, separated by commas, whose web pages may call the service; empty = none (ADR 62)"
    )
    http_max_connections: int = Field(
        512, ge=1, le=65_536, description="maximum number of connections at a time (`max_connections`)"
    )
    http_header_s: float = Field(10.0, gt=0, description="time in which the header of a request must arrive")
    http_body_s: float = Field(120.0, gt=0, description="time in which the body of a request must arrive")
    http_max_body_mb: int = Field(
        64, ge=1, le=64, description="maximum size of a request's body, MiB (`max_body_bytes`)"
    )
    http_tokens_file: Path | None = Field(
        None, description="file of the tokens that HTTP requests need (`penstock token`); none = no authentication"
    )
    http_oidc_issuer: str | None = Field(
        None, min_length=1, description="URL of an OpenID Connect issuer whose JWTs HTTP requests may carry (ADR 67)"
    )
    http_oidc_audience: str = Field("", description="audience (`aud`) that the issuer's tokens must have")
    http_oidc_roles: str = Field(
        "", description="role for each value of the claim, separated by commas: `ops=admin,apps=write,staff=read`"
    )
    http_oidc_role_claim: str = Field(
        "roles",
        min_length=1,
        description="claim whose values determine the role; a path to a nested claim: `realm_access.roles`",
    )
    http_oidc_jwks: str | None = Field(
        None, min_length=1, description="file or URL of the issuer's key set (JWKS); none = by discovery"
    )
    http_oidc_ca: Path | None = Field(None, description="CA (PEM) of the issuer's certificate; none = the system's CAs")
    http_oidc_leeway_s: float = Field(
        30.0, ge=0, le=300, description="tolerated difference between the issuer's clock and this one"
    )
    http_oidc_rate: float | None = Field(
        None, gt=0, description="requests per second that each subject of the issuer may send; none = no limit"
    )
    http_oidc_max_body_mb: float | None = Field(
        None, gt=0, description="largest body of a request of such a subject, MiB; none = the service's limit"
    )
    http_certificate: Path | None = Field(
        None, description="certificate chain (PEM) of the HTTP interface, which is then HTTPS; may change while it runs"
    )
    http_key: Path | None = Field(None, description="private key (PEM) of `http_certificate`")
    http_client_ca: Path | None = Field(
        None, description="CA (PEM) of client certificates; if set, HTTPS clients must present a certificate"
    )
    http_insecure: bool = Field(
        False, description="accept unauthenticated requests on addresses other than the loopback interface"
    )
    advertised_host: str | None = Field(
        None, description="name by which other processes reach this host; none = the address that is listened on"
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="least severe level that is logged: `debug`, `info`, `warning` or `error`"
    )
    log_format: Literal["json", "text"] = Field("json", description="`json`, or `text` for reading on a terminal")
    poll_ms: int = Field(50, ge=1, le=10_000, description="maximum time that a step waits for input")
    give_up_s: float = Field(
        300.0, gt=0, description="how long transient failures are retried before the service ends with exit code 1"
    )
    leave_s: float = Field(
        LEAVE_S, gt=0, le=3_600, description="time that a query engine or store has after SIGTERM to hand over its work"
    )
    kafka: dict[str, str] = Field(
        default_factory=dict,
        repr=False,
        description="librdkafka properties: `PENSTOCK_KAFKA_SECURITY_PROTOCOL` sets `security.protocol`",
    )

    secret_properties_dir: Path | None = Field(
        None,
        description="folder with one file per secret librdkafka property: the file `sasl.password` contains its value."
        " A mounted Kubernetes Secret has this form",
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources by precedence: arguments, environment, file."""
        del dotenv_settings, file_secret_settings
        file = os.environ.get(_FILE)
        toml = (TomlConfigSettingsSource(settings_cls, Path(file)),) if file else ()
        return (init_settings, env_settings, *toml)

    def http_url(self, port: int) -> str:
        """Return the URL at which other processes reach this process over HTTP. If this process listens on all
        addresses, the URL contains the host's name.
        """
        host = self.advertised_host or (socket.gethostname() if self.http_host in _EVERYWHERE else self.http_host)
        scheme = "http" if self.http_certificate is None else "https"
        return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"

    def access(self) -> Access:
        """Return the hosts and origins that browser requests are allowed to have."""
        return Access.inside(_by_comma(self.http_allow_hosts), _by_comma(self.http_allow_origins))

    def tokens(self) -> TokenFile | None:
        """Return the tokens in `http_tokens_file`; None if this setting is not given. SettingsError if the file cannot
        be used. SettingsError also if requests are not authenticated and other machines can send requests, unless
        `http_insecure` is set.
        """
        if self.http_tokens_file is None:
            if self.http_oidc_issuer is None and not self.http_insecure and not is_loopback(self.http_host):
                raise SettingsError(
                    f"{_PREFIX}HTTP_HOST is {self.http_host}, but requests are not authenticated: set"
                    f" {_PREFIX}HTTP_TOKENS_FILE, or {_PREFIX}HTTP_INSECURE=true to accept all requests"
                )
            return None
        try:
            return TokenFile(self.http_tokens_file)
        except TokenError as error:
            raise SettingsError(f"{_PREFIX}HTTP_TOKENS_FILE: {error}") from error

    def issuer(self) -> IssuerSettings | None:
        """Return the issuer of JWTs, or None if there is no issuer. SettingsError if a setting is missing or a file is
        unusable.
        """
        if self.http_oidc_issuer is None:
            if self.http_oidc_audience or self.http_oidc_roles or self.http_oidc_jwks:
                raise SettingsError(f"{_PREFIX}HTTP_OIDC_ISSUER is missing, but other settings of an issuer are given")
            return None
        from penstock.http.security.issuer import IssuerSettings, roles_of  # noqa: PLC0415 - loads cryptography
        from penstock.http.security.key_sets import IssuerError  # noqa: PLC0415

        try:
            found = IssuerSettings(
                self.http_oidc_issuer,
                self.http_oidc_audience,
                roles_of(_by_comma(self.http_oidc_roles)),
                self.http_oidc_role_claim,
                self.http_oidc_jwks,
                self.http_oidc_ca,
                self.http_oidc_leeway_s,
                self.http_oidc_rate,
                None if self.http_oidc_max_body_mb is None else int(self.http_oidc_max_body_mb * (1 << 20)),
            )
            found.check()
        except IssuerError as error:
            raise SettingsError(f"{_PREFIX}HTTP_OIDC_ISSUER and its settings: {error}") from error
        return found

    def certificates(self) -> Certificates | None:
        """Return the files of HTTPS; None for HTTP. SettingsError if a part is missing."""
        if (self.http_certificate is None) != (self.http_key is None):
            raise SettingsError(f"{_PREFIX}HTTP_CERTIFICATE and {_PREFIX}HTTP_KEY are needed together")
        if self.http_certificate is None or self.http_key is None:
            if self.http_client_ca is not None:
                raise SettingsError(f"{_PREFIX}HTTP_CLIENT_CA has no meaning without {_PREFIX}HTTP_CERTIFICATE")
            return None
        return Certificates(self.http_certificate, self.http_key, self.http_client_ca)

    def web_limits(self) -> WebLimits:
        """Return the web server's limits."""
        return WebLimits(
            self.http_max_connections,
            self.http_header_s,
            self.http_body_s,
            max_body_bytes=self.http_max_body_mb << 20,
        )

    def kafka_properties(self) -> dict[str, str]:
        """Return the librdkafka properties. Their sources are the table `kafka` of the settings file, the files in
        `secret_properties_dir`, and the environment. Later sources take precedence.

        SettingsError if `secret_properties_dir` cannot be read.
        """
        passed = {
            name.removeprefix(_KAFKA).lower().replace("_", "."): value
            for name, value in os.environ.items()
            if name.startswith(_KAFKA)
        }
        return self.kafka | _file_properties(self.secret_properties_dir) | passed


def _file_properties(folder: Path | None) -> dict[str, str]:
    """Return the content of each file, by file name. Hidden files are not properties, because Kubernetes has hidden
    files of its own in mounted folders.
    """
    if folder is None:
        return {}
    try:
        files = [file for file in sorted(folder.iterdir()) if file.is_file() and not file.name.startswith(".")]
        return {file.name: file.read_text(encoding="utf-8").strip("\r\n") for file in files}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError(f"{_PREFIX}SECRET_PROPERTIES_DIR: {error}") from error


def _by_comma(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


S = TypeVar("S", bound=ServiceSettings)


def load(settings: type[S], **given: str) -> S:
    """Load the settings; arguments take precedence. SettingsError with one line per invalid setting."""
    file = os.environ.get(_FILE)
    if file and not Path(file).is_file():
        raise SettingsError(f"{_FILE}: there is no file {file}")
    try:
        return settings(**given)  # type: ignore[arg-type]  # pydantic reads them from its sources
    except ValidationError as error:
        lines = [f"{_PREFIX}{'.'.join(map(str, e['loc'])).upper()}: {e['msg']}" for e in error.errors()]
        raise SettingsError("\n".join(lines)) from error
    except (_SourceError, ValueError) as error:
        raise SettingsError(f"settings cannot be read: {error}") from error
