"""`penstock serve`: one engine behind HTTP, with a page that shows what its queries answer."""

from __future__ import annotations

import signal
import sys
import threading
from pathlib import Path  # noqa: TC003 - typer reads it
from typing import Annotated

import typer

from penstock.engine import Engine
from penstock.errors import StorageError


def serve(
    data_dir: Annotated[Path | None, typer.Option(help="Where everything is kept; none = in memory only.")] = None,
    port: Annotated[int, typer.Option(help="0 = any.", min=0, max=65_535)] = 7878,
    host: Annotated[str, typer.Option(help="Whom to listen for. Nobody is asked who they are.")] = "127.0.0.1",
    shards: Annotated[int, typer.Option(help="Of a new stored graph.", min=1)] = 1,
    checkpoint_s: Annotated[float, typer.Option(help="Seconds between checkpoints.", min=0.1)] = 60.0,
) -> None:
    """Serve an engine over HTTP until Ctrl-C: SPARQL, streams, standing queries with live answers, a page at /."""
    # Starlette and uvicorn would take a sixth of every command's start.
    from penstock.http.embedded import application  # noqa: PLC0415
    from penstock.web_server import WebServer  # noqa: PLC0415

    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    with Engine(data_dir=data_dir, shards=shards) as engine:
        server = WebServer(application(engine), host, port)
        print(f"Penstock at http://{_address(host)}:{server.port}/", flush=True)
        kept = engine.stats()
        try:
            while not stopping.wait(checkpoint_s):
                if data_dir is not None and (now := engine.stats()) != kept:
                    kept = now if _checkpoint(engine) else kept
        finally:
            server.stop()


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
