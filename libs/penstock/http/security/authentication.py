"""Checks the token of each request before any route (ADR 66)."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers
from starlette.middleware import Middleware
from starlette.responses import JSONResponse, Response

from penstock.errors import AccessError, LimitError, UnavailableError
from penstock.http.security.identities import NoRoleError, RefusedTokenError
from penstock.http.security.request_rate import RequestRates
from penstock.http.security.roles import Identity, Role, role_of

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from penstock.http.security.identities import Identities

_GRANT = "penstock.grant"  # key of the ASGI scope
COOKIE = "penstock_token"
"""Name of the cookie in which a browser keeps the token after the login."""
_LOGIN = "/login"
_MAX_LOGIN_BYTES = 64 << 10
_MAX_COOKIE_BYTES = 4000  # browsers drop a cookie of more than 4096 bytes, with its name and attributes
_RETRY_S = 10
_SUCCESS = range(200, 300)
_EXPIRED = b"event: expired\ndata: the token has expired\n\n"
_audit = logging.getLogger("penstock.audit")


@dataclass(slots=True)
class Grant:
    """The owner of a request's token. `needed`: the highest role that the checks of this request have required
    so far.
    """

    identity: Identity
    needed: Role


def need(scope: MutableMapping[str, Any], role: Role) -> None:
    """Check that the token of a request has the role that the request's body needs. AccessError (403) if the token's
    role is lower.
    """
    grant: Grant | None = scope.get(_GRANT)
    if grant is None:
        return  # requests are not authenticated
    grant.needed = max(grant.needed, role)
    if grant.identity.role < role:
        raise AccessError(_lacks(grant.identity, role))


def authentication(identities: Identities | None) -> list[Middleware]:
    """Return the middleware that checks tokens. The list is empty if requests are not authenticated."""
    return [] if identities is None else [Middleware(AuthenticationMiddleware, identities=identities)]


class _RefusedError(Exception):
    """A request is refused with a response. `name`: the owner of the request's token, if known."""

    def __init__(self, response: Response, name: str = "") -> None:
        super().__init__(response.status_code)
        self.response, self.name = response, name


class AuthenticationMiddleware:
    """Refuses requests. The status of the response is 401 for a request without a valid token, 403 if the role of the
    token does not suffice, 429 if the request exceeds the token's rate, and 503 while tokens cannot be checked.

    `POST /login` with a token as body sets a cookie. From then on, the browser sends this cookie.
    """

    def __init__(self, app: ASGIApp, identities: Identities) -> None:
        self._app = app
        self._identities = identities
        self._rates = RequestRates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, and pass an allowed request on to the application."""
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
        try:
            identity = await self._admitted(Headers(scope=scope), needed)
        except _RefusedError as refused:
            if needed > Role.READ:
                _record(scope, refused.name, refused.response.status_code)
            await refused.response(scope, receive, send)
        else:
            await self._pass_on(identity, needed, scope, receive, send)

    async def _admitted(self, headers: Headers, needed: Role) -> Identity:
        """Return the owner of a request's token. _RefusedError if the request has no valid token, or if the owner is
        not allowed to send the request now.
        """
        token = _token_of(headers)
        if token is None:
            raise _RefusedError(_unauthorized("a bearer token is needed"))
        identity = await self._owner(token)
        if identity.role < needed:
            raise _RefusedError(_refusal(403, _lacks(identity, needed)), identity.name)
        if (wait_s := self._rates.wait_s(identity)) > 0:
            response = _refusal(429, f"{identity.name} may send {identity.rate:g} requests per second (`rate`)")
            response.headers["retry-after"] = str(math.ceil(wait_s))
            raise _RefusedError(response, identity.name)
        return identity

    async def _owner(self, token: str) -> Identity:
        """Return the owner of a token. _RefusedError if the token is invalid, cannot be checked, or has an owner
        without a role.
        """
        try:
            return await self._identities.owner(token)
        except RefusedTokenError as error:
            raise _RefusedError(_unauthorized(str(error), error="invalid_token")) from error
        except NoRoleError as error:
            raise _RefusedError(_refusal(403, str(error)), error.name) from error
        except UnavailableError as error:
            response = _refusal(503, str(error))
            response.headers["retry-after"] = str(_RETRY_S)
            raise _RefusedError(response) from error

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
                if identity.expires_s is not None and _is_stream(message):
                    left_s = max(0.0, identity.expires_s - time.time())
                    expiry.reschedule(asyncio.get_running_loop().time() + left_s)
            await send(message)

        grant = Grant(identity, needed)
        try:
            async with asyncio.timeout(None) as expiry:
                await self._app({**scope, _GRANT: grant}, bounded, observed)
        except TimeoutError:
            if not expiry.expired():
                raise
            await send({"type": "http.response.body", "body": _EXPIRED, "more_body": False})
        finally:
            if grant.needed > Role.READ:
                _record(scope, identity.name, status)

    async def _login(self, scope: Scope, receive: Receive) -> Response:
        """Set the cookie for a valid token, or clear the cookie for an empty body."""
        if scope["method"] != "POST":
            return _refusal(405, "POST a token")
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if len(body) > _MAX_LOGIN_BYTES or not message.get("more_body"):
                break
        token = body[:_MAX_LOGIN_BYTES].decode("utf-8", "replace").strip()
        if len(token) > _MAX_COOKIE_BYTES:
            return _refusal(413, f"the token has more than {_MAX_COOKIE_BYTES} characters: no cookie can contain it")
        try:
            identity = await self._owner(token) if token else None
        except _RefusedError as refused:
            return refused.response
        response = JSONResponse({} if identity is None else {"name": identity.name, "role": _name(identity.role)})
        if identity is None:
            response.delete_cookie(COOKIE)
        else:
            secure = scope.get("scheme") == "https"
            response.set_cookie(COOKIE, token, httponly=True, samesite="strict", secure=secure)
        return response


def _is_stream(start: Message) -> bool:
    """Return whether a response is a stream of server-sent events, which has no end of its own."""
    headers = Headers(raw=start.get("headers", []))
    return headers.get("content-type", "").startswith("text/event-stream")


def _token_of(headers: Headers) -> str | None:
    """Return the token in the Authorization header. If there is none, return the token in the cookie, or None."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    if scheme.lower() == "bearer" and token.strip():
        return token.strip()
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
    except CookieError:
        return None
    return None if found is None else found.value


def _unauthorized(message: str, **parameters: str) -> JSONResponse:
    response = _refusal(401, message)
    named = "".join(f', {name}="{value}"' for name, value in parameters.items())
    response.headers["www-authenticate"] = f'Bearer realm="penstock"{named}'
    return response


def _refusal(status: int, message: str) -> JSONResponse:
    names = {
        401: "Unauthorized",
        403: "Forbidden",
        405: "MethodNotAllowed",
        413: "LimitError",
        429: "TooManyRequests",
        503: "UnavailableError",
    }
    return JSONResponse({"error": names[status], "message": message}, status)


def _lacks(identity: Identity, needed: Role) -> str:
    return f"{identity.name} has the role {_name(identity.role)}, this needs {_name(needed)}"


def _name(role: Role) -> str:
    return role.name.lower()


def _record(scope: Scope, name: str, status: int) -> None:
    """Write a change, or an attempted change, to the audit log. Neither the token nor the body is written."""
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
