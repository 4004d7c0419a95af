"""`penstock serve`: an embedded engine with an HTTP API, and a page that displays live results."""

from __future__ import annotations

import signal
import sys
import threading
import time
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.engine import Engine
from penstock.errors import PenstockError, StorageError
from penstock.mapping.encodings.registry_access import registry_access

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.http.security import TokenFile
    from penstock.http.security.issuer import Issuer

LOOK_S = 0.25
"""Interval in seconds between checks for idle streams."""


class Durability(StrEnum):
    """The time at which an acknowledged change (a 2xx response) is durable."""

    none = "none"
    checkpoint = "checkpoint"
    commit = "commit"


def serve(
    data_dir: Annotated[Path | None, typer.Option(help="Data directory; default: in memory only.")] = None,
    port: Annotated[int, typer.Option(help="Port to listen on; 0 = any free port.", min=0, max=65_535)] = 7878,
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    shards: Annotated[int, typer.Option(help="Number of shards of a new stored graph.", min=1)] = 1,
    checkpoint_s: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0.1)] = 60.0,
    durability: Annotated[
        Durability,
        typer.Option(
            help="With --data-dir. commit: a 2xx response means that the change is durable. "
            "checkpoint: a crash loses changes after the last checkpoint. none: data is saved only at the end."
        ),
    ] = Durability.commit,
    load_directory: Annotated[Path | None, typer.Option(help="Directory of the files that LOAD may read.")] = None,
    schema_registry: Annotated[
        str | None, typer.Option(help="URL of the schema registry for messages in Avro and Protobuf (Confluent's API).")
    ] = None,
    schema_registry_credentials: Annotated[
        Path | None, typer.Option(help="File with USER:PASSWORD, or with a bearer token, for the registry.")
    ] = None,
    schema_registry_ca: Annotated[
        Path | None, typer.Option(help="CA (PEM) of the registry; default: the system's.")
    ] = None,
    allow_host: Annotated[list[str] | None, typer.Option(help="Additional host name of this service; * = any.")] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Origin (scheme://host[:port]) whose pages may call this service; * = any.")
    ] = None,
    tokens: Annotated[
        Path | None, typer.Option(help="File of the tokens that requests need (`penstock token`).")
    ] = None,
    oidc_issuer: Annotated[
        str | None, typer.Option(help="URL of an OpenID Connect issuer whose JWTs are accepted.")
    ] = None,
    oidc_audience: Annotated[str, typer.Option(help="Audience (`aud`) that the issuer's tokens must have.")] = "",
    oidc_role: Annotated[
        list[str] | None, typer.Option(help="VALUE=ROLE: role (read, write, admin) by a value of the claim.")
    ] = None,
    oidc_role_claim: Annotated[
        str, typer.Option(help="Claim with these values; a path with dots for a nested claim.")
    ] = "roles",
    oidc_jwks: Annotated[
        str | None, typer.Option(help="File or URL of the issuer's key set (JWKS); default: by discovery.")
    ] = None,
    oidc_ca: Annotated[Path | None, typer.Option(help="CA (PEM) of the issuer; default: the system's.")] = None,
    oidc_leeway_s: Annotated[
        float, typer.Option(help="Tolerated difference of clocks in seconds.", min=0, max=300)
    ] = 30.0,
    oidc_rate: Annotated[
        float | None, typer.Option(help="Requests per second of each subject of the issuer.", min=0.001)
    ] = None,
    oidc_max_body_mb: Annotated[
        float | None, typer.Option(help="Maximum size of a request's body of each subject, in MiB.", min=0.001)
    ] = None,
    certificate: Annotated[Path | None, typer.Option(help="Certificate chain (PEM): serve HTTPS.")] = None,
    key: Annotated[Path | None, typer.Option(help="Private key (PEM) of the certificate.")] = None,
    client_ca: Annotated[Path | None, typer.Option(help="CA (PEM) of the certificates that clients need.")] = None,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Accept requests of other machines without authentication.")
    ] = False,
    audit_log: Annotated[Path | None, typer.Option(help="File to which changes are logged, as JSON lines.")] = None,
    max_connections: Annotated[int, typer.Option(help="Maximum number of open connections.", min=1)] = 512,
    header_s: Annotated[float, typer.Option(help="Time limit in seconds for a request's header.", min=0.1)] = 10.0,
    body_s: Annotated[float, typer.Option(help="Time limit in seconds for a request's body.", min=0.1)] = 120.0,
    max_body_mb: Annotated[int, typer.Option(help="Maximum size of a request's body in MiB.", min=1, max=64)] = 64,
) -> None:
    """Serve an engine over HTTP until Ctrl-C: SPARQL, streams, standing queries with live results, and a page at /."""
    # Importing Starlette and uvicorn here saves a sixth of the start-up time of the other commands.
    from penstock.http.embedded import application  # noqa: PLC0415
    from penstock.http.live import Feeds  # noqa: PLC0415
    from penstock.http.security.audit import write_to  # noqa: PLC0415
    from penstock.http.security.certificates import Certificates  # noqa: PLC0415
    from penstock.http.security.token_kinds import identities_of  # noqa: PLC0415
    from penstock.http.web_access import Access, is_loopback  # noqa: PLC0415
    from penstock.http.web_limits import WebLimits  # noqa: PLC0415
    from penstock.http.web_server import WebServer  # noqa: PLC0415

    if tokens is None and oidc_issuer is None and not insecure and not is_loopback(host):
        raise typer.BadParameter(
            f"requests of other machines would not be authenticated at {host}: give --tokens FILE, or --insecure"
        )
    if (certificate is None) != (key is None):
        raise typer.BadParameter("--certificate and --key are needed together")
    token_file = None if tokens is None else _token_file(tokens)
    issuer = None
    if oidc_issuer is not None:
        issuer = _issuer(
            oidc_issuer,
            oidc_audience,
            oidc_role or (),
            oidc_role_claim,
            oidc_jwks,
            oidc_ca,
            oidc_leeway_s,
            oidc_rate,
            oidc_max_body_mb,
        )
    elif oidc_audience or oidc_role or oidc_jwks:
        raise typer.BadParameter("--oidc-issuer is missing, but other options of an issuer are given")
    certificates = None if certificate is None or key is None else Certificates(certificate, key, client_ca)
    if audit_log is not None:
        write_to(audit_log)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    durable = Durability.none if data_dir is None else durability
    registry = registry_access(schema_registry, schema_registry_credentials, schema_registry_ca)
    with Engine(
        data_dir, shards, durability=durable.value, load_directory=load_directory, schema_registry=registry
    ) as engine:
        access = Access.listening_on(host, allow_host or (), allow_origin or ())
        limits = WebLimits(max_connections, header_s, body_s, max_body_bytes=max_body_mb << 20)
        feeds = Feeds.of(engine)
        app = application(engine, access, feeds, identities_of(token_file, issuer))
        server = WebServer(app, host, port, limits, certificates)
        scheme = "http" if certificates is None else "https"
        print(f"Penstock at {scheme}://{_address(host)}:{server.port}/", flush=True)
        try:
            _keep(engine, stopping, None if durable is Durability.none else checkpoint_s)
        finally:
            feeds.close()
            server.stop()
            if issuer is not None:
                issuer.close()


def _token_file(path: Path) -> TokenFile:
    from penstock.http.security import TokenError, TokenFile  # noqa: PLC0415

    try:
        return TokenFile(path)
    except TokenError as error:
        raise typer.BadParameter(str(error)) from error


def _issuer(
    url: str,
    audience: str,
    roles: Iterable[str],
    role_claim: str,
    jwks: str | None,
    ca: Path | None,
    leeway_s: float,
    rate: float | None,
    max_body_mb: float | None,
) -> Issuer:
    from penstock.http.security.issuer import Issuer, IssuerSettings, roles_of  # noqa: PLC0415 - loads cryptography
    from penstock.http.security.key_sets import IssuerError  # noqa: PLC0415

    try:
        most = None if max_body_mb is None else int(max_body_mb * (1 << 20))
        return Issuer(IssuerSettings(url, audience, roles_of(roles), role_claim, jwks, ca, leeway_s, rate, most))
    except IssuerError as error:
        raise typer.BadParameter(f"--oidc-issuer and its options: {error}") from error


def _keep(engine: Engine, stopping: threading.Event, checkpoint_s: float | None) -> None:
    """Advance idle streams and write checkpoints after changes, until the service stops."""
    saved, due = _state(engine), time.monotonic() + (checkpoint_s or 0.0)
    while not stopping.wait(LOOK_S):
        try:
            engine.advance_idle()
        except PenstockError as error:
            print(f"idle streams cannot advance: {error}", file=sys.stderr, flush=True)
        if checkpoint_s is not None and time.monotonic() >= due:
            now = _state(engine)
            if now != saved and _checkpoint(engine):
                saved = now
            due = time.monotonic() + checkpoint_s


def _state(engine: Engine) -> dict[str, Any]:
    """Return the engine's statistics, without the statistics of the write-ahead log. A change of data changes the
    result. A checkpoint does not change the result.
    """
    return {name: value for name, value in engine.stats().items() if name != "log"}


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _checkpoint(engine: Engine) -> bool:
    """Write a checkpoint. A failure is reported. The previous checkpoint then stays valid, and the engine continues."""
    try:
        engine.checkpoint()
    except StorageError as error:
        print(f"checkpoint failed: {error}", file=sys.stderr, flush=True)
        return False
    return True
