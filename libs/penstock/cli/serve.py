"""`penstock serve`: one engine behind HTTP, with a page that shows what its queries answer."""

from __future__ import annotations

import signal
import sys
import threading
import time
from enum import StrEnum
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated, Any

import typer

from penstock.engine import Engine
from penstock.errors import PenstockError, StorageError

LOOK_S = 0.25
"""Seconds between two looks at idle streams."""


class Durability(StrEnum):
    """When a change that was answered with 2xx is on the disk."""

    none = "none"
    checkpoint = "checkpoint"
    commit = "commit"


def serve(
    data_dir: Annotated[Path | None, typer.Option(help="Where everything is kept; none = in memory only.")] = None,
    port: Annotated[int, typer.Option(help="0 = any.", min=0, max=65_535)] = 7878,
    host: Annotated[str, typer.Option(help="Address to listen on. Requests are not authenticated.")] = "127.0.0.1",
    shards: Annotated[int, typer.Option(help="Of a new stored graph.", min=1)] = 1,
    checkpoint_s: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0.1)] = 60.0,
    durability: Annotated[
        Durability,
        typer.Option(
            help="With --data-dir. commit: a 2xx answer says that the change is on the disk. "
            "checkpoint: a crash loses what came after the last checkpoint. none: only the end keeps anything."
        ),
    ] = Durability.commit,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A further name of this service; * = every name.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="An origin (scheme://host[:port]) whose web pages may call; * = every one.")
    ] = None,
    max_connections: Annotated[int, typer.Option(help="Open at a time.", min=1)] = 512,
    header_s: Annotated[float, typer.Option(help="Seconds until a request's header has arrived.", min=0.1)] = 10.0,
    body_s: Annotated[float, typer.Option(help="Seconds until a request's body has arrived.", min=0.1)] = 120.0,
    max_body_mb: Annotated[int, typer.Option(help="MiB of a request's body.", min=1, max=64)] = 64,
) -> None:
    """Serve an engine over HTTP until Ctrl-C: SPARQL, streams, standing queries with live answers, a page at /."""
    # Starlette and uvicorn would take a sixth of every command's start.
    from penstock.http.embedded import application  # noqa: PLC0415
    from penstock.http.web_access import Access  # noqa: PLC0415
    from penstock.http.web_limits import WebLimits  # noqa: PLC0415
    from penstock.http.web_server import WebServer  # noqa: PLC0415

    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    durable = Durability.none if data_dir is None else durability
    with Engine(data_dir=data_dir, shards=shards, durability=durable.value) as engine:
        access = Access.listening_on(host, allow_host or (), allow_origin or ())
        limits = WebLimits(max_connections, header_s, body_s, max_body_bytes=max_body_mb << 20)
        server = WebServer(application(engine, access), host, port, limits)
        print(f"Penstock at http://{_address(host)}:{server.port}/", flush=True)
        try:
            _keep(engine, stopping, None if durable is Durability.none else checkpoint_s)
        finally:
            server.stop()


def _keep(engine: Engine, stopping: threading.Event, checkpoint_s: float | None) -> None:
    """Advance idle streams, and write checkpoints of what has changed, until the service stops."""
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
    """Return what tells whether anything has changed."""
    return {name: value for name, value in engine.stats().items() if name != "log"}


def _address(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _checkpoint(engine: Engine) -> bool:
    """Say whether it could be written; where not, the one before stays in force, and the engine goes on."""
    try:
        engine.checkpoint()
    except StorageError as error:
        print(f"no checkpoint: {error}", file=sys.stderr, flush=True)
        return False
    return True
