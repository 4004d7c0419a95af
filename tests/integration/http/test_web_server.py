"""The web server of a service: what the end of the server interrupts."""

from __future__ import annotations

import asyncio
import logging
from threading import Event, Thread

import httpx
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from penstock.http.web_server import WebServer


def test_an_interrupted_request_has_a_response(caplog):
    began, found = Event(), []

    async def slow(_):
        began.set()
        await asyncio.sleep(60)
        return PlainTextResponse("too late")

    server = WebServer(Starlette(routes=[Route("/", slow)]), "127.0.0.1", 0)
    asking = Thread(target=lambda: found.append(httpx.get(f"http://127.0.0.1:{server.port}/", timeout=30)))
    asking.start()
    assert began.wait(10)
    with caplog.at_level(logging.ERROR):
        server.stop()
    asking.join(10)
    assert (found[0].status_code, found[0].json()["error"]) == (503, "UnavailableError")
    assert not [record for record in caplog.records if record.exc_info], "no stack trace"
