"""A stream of results ends when its token expires, and each subject of an issuer has limits of its own."""

from __future__ import annotations

import asyncio
import time

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

from penstock.http.security.authentication import authentication
from penstock.http.security.request_rate import _MAX_OWNERS, RequestRates
from penstock.http.security.roles import Identity, Role


class Owner:
    """Every token is that of one subject, whose token expires after some seconds."""

    def __init__(self, left_s: float | None) -> None:
        self.left_s = left_s

    async def owner(self, token: str) -> Identity:
        return Identity("oidc:alice", Role.READ, expires_s=None if self.left_s is None else time.time() + self.left_s)


ENDED = []


async def live(_):
    async def events():
        try:
            for number in range(20):
                yield f"data: {number}\n\n"
                await asyncio.sleep(0.05)
        finally:
            ENDED.append(True)

    return StreamingResponse(events(), media_type="text/event-stream")


async def slow(_):
    await asyncio.sleep(0.3)
    return PlainTextResponse("done")


def body_of(path: str, left_s: float | None) -> str:
    """The body of the response to a request with a token that is valid for some seconds."""
    routes = [Route("/queries/q/live", live), Route("/slow", slow)]
    app = Starlette(routes=routes, middleware=authentication(Owner(left_s)))
    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "headers": [(b"authorization", b"Bearer x")],
        "query_string": b"",
    }
    bodies: list[bytes] = []
    received: list[bool] = []

    async def receive():
        if received:
            await asyncio.sleep(60)  # the client stays connected
        received.append(True)
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        bodies.append(message.get("body", b""))

    asyncio.run(app(scope, receive, send))
    return b"".join(bodies).decode()


def test_a_stream_ends_with_an_event_when_its_token_expires():
    ENDED.clear()
    found = body_of("/queries/q/live", 0.2)
    assert found.startswith("data: 0\n\n")
    assert "data: 19" not in found
    assert found.endswith("event: expired\ndata: the token has expired\n\n")
    assert ENDED == [True]


@pytest.mark.parametrize("left_s", [None, 60.0])
def test_a_stream_of_a_valid_token_goes_on(left_s):
    found = body_of("/queries/q/live", left_s)
    assert "data: 19" in found
    assert "expired" not in found


def test_another_response_is_complete_although_its_token_expires_meanwhile():
    assert body_of("/slow", 0.1) == "done"


def test_the_number_of_token_buckets_is_bounded():
    now = 0.0
    rates = RequestRates(lambda: now)
    for number in range(_MAX_OWNERS + 10):
        assert rates.wait_s(Identity(f"oidc:{number}", Role.READ, rate=1.0)) == 0.0
    assert len(rates._levels) <= _MAX_OWNERS
    assert rates.wait_s(Identity(f"oidc:{_MAX_OWNERS + 9}", Role.READ, rate=1.0)) > 0.0
    now = 10.0
    for number in range(_MAX_OWNERS):
        rates.wait_s(Identity(f"more:{number}", Role.READ, rate=1.0))
    assert len(rates._levels) <= _MAX_OWNERS
