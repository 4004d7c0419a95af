"""Checks the token of each request before any route (ADR 66)."""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any, Protocol

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response

from penstock.errors import AccessError, LimitError
from penstock.http.security.request_rate import RequestRates
from penstock.http.security.roles import Identity, Role, role_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_GRANT = "penstock.grant"  # key of the ASGI scope
COOKIE = "penstock_token"
"""Name of the cookie in which a browser keeps the token after the login."""
_LOGIN = "/login"
_MAX_LOGIN_BYTES = 4096
_SUCCESS = range(200, 300)
_audit = logging.getLogger("penstock.audit")


@dataclass(slots=True)
class Grant:
    """The owner of a request's token, and the role that the request needs, as far as known from the checks so far."""

    identity: Identity
    needed: Role


def need(scope: MutableMapping[str, Any], role: Role) -> None:
    """Check that the token of a request has the role that the request's body needs. AccessError (403) if its role is
    lower.
    """
    grant: Grant | None = scope.get(_GRANT)
    if grant is None:
        return  # requests are not authenticated
    grant.needed = max(grant.needed, role)
    if grant.identity.role < role:
        raise AccessError(_lacks(grant.identity, role))


class Identities(Protocol):
    """Finds the owner of a token."""

    def identify(self, token: str) -> Identity | None:
        """Return the owner of a valid token, or None. May be called from any thread."""


def authentication(identities: Identities | None) -> list[Middleware]:
    """Return the middleware that checks tokens; none if requests are not authenticated."""
    return [] if identities is None else [Middleware(AuthenticationMiddleware, identities=identities)]


class AuthenticationMiddleware:
    """Responds with 401 without a valid token, 403 without the role, 429 beyond the token's rate.

    `POST /login` with a token as body sets the cookie that a browser sends from then on.
    """

    def __init__(self, app: ASGIApp, identities: Identities) -> None:
        self._app = app
        self._identities = identities
        self._rates = RequestRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass it on if it is allowed."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        method, path = scope["method"], scope["path"]
        if path == _LOGIN:
            await (await self._login(scope, receive))(scope, receive, send)
            return
        needed = role_of(method, path)
        if needed is None:
            await self._app(scope, receive, send)
            return
        token = _token_of(Headers(scope=scope))
        identity = None if token is None else self._identities.identify(token)
        if identity is None:
            response = _refusal(401, "a bearer token is needed" if token is None else "the token is not valid")
            response.headers["www-authenticate"] = 'Bearer realm="penstock"'
        elif identity.role < needed:
            response = _refusal(403, _lacks(identity, needed))
        elif (wait_s := self._rates.wait_s(identity)) > 0:
            response = _refusal(429, f"{identity.name} may send {identity.rate:g} requests per second (`rate`)")
            response.headers["retry-after"] = str(math.ceil(wait_s))
        else:
            await self._pass_on(identity, needed, scope, receive, send)
            return
        if needed > Role.READ:
            _record(scope, "" if identity is None else identity.name, response.status_code)
        await response(scope, receive, send)

    async def _pass_on(self, identity: Identity, needed: Role, scope: Scope, receive: Receive, send: Send) -> None:
        status = 500
        limit, size = identity.max_body_bytes, 0

        async def bounded() -> Message:
            nonlocal size
            message = await receive()
            size += len(message.get("body", b""))
            if limit is not None and size > limit:
                raise LimitError(f"{identity.name} may send {limit} bytes in a request (`max_body_mb`)")
            return message

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        grant = Grant(identity, needed)
        try:
            await self._app({**scope, _GRANT: grant}, bounded, observed)
        finally:
            if grant.needed > Role.READ:
                _record(scope, identity.name, status)

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        """Set the cookie for a valid token, or clear it for an empty body."""
        if scope["method"] != "POST":
            return _refusal(405, "POST a token")
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > _MAX_LOGIN_BYTES or not message.get("more_body"):
                break
        token = body[:_MAX_LOGIN_BYTES].decode("utf-8", "replace").strip()
        identity = self._identities.identify(token) if token else None
        if token and identity is None:
            return _refusal(401, "the token is not valid")
        response = JSONResponse({} if identity is None else {"name": identity.name, "role": _name(identity.role)})
        if identity is None:
            response.delete_cookie(COOKIE)
        else:
            secure = scope.get("scheme") == "https"
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return response


def _token_of(headers: Headers) -> str | None:
    """Return the token in the Authorization header, else in the cookie, else None."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _refusal(status: int, message: str) -> JSONResponse:
    names = {401: "Unauthorized", 403: "Forbidden", 405: "MethodNotAllowed", 429: "TooManyRequests"}
    return JSONResponse({"error": names[status], "message": message}, status)


def _lacks(identity: Identity, needed: Role) -> str:
    return f"{identity.name} has the role {_name(identity.role)}, this needs {_name(needed)}"


def _name(role: Role) -> str:
    return role.name.lower()


def _record(scope: Scope, name: str, status: int) -> None:
    """Write a change, or the attempt of one, to the audit log. Neither the token nor the body is written."""
    client = scope.get("client")
    _audit.info(
        "change" if status in _SUCCESS else "refused change",
        extra={
            "user": name,
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "address": None if client is None else client[0],
        },
    )
