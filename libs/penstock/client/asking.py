"""Asking services over HTTP: one instance after the other until one answers, for as long as that may take."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

from penstock.errors import DataError, LimitError, PenstockError, QueryError, QueryLimitError, UnknownStreamError
from penstock.log import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TRIES, _PAUSE_S, _ANSWER_S = 60, 0.25, 70.0
_ERRORS: dict[str, type[PenstockError]] = {
    "DataError": DataError,
    "LimitError": LimitError,
    "UnknownStreamError": UnknownStreamError,
}
_QUERY_ERRORS: dict[str, type[QueryError]] = {"QueryError": QueryError, "QueryLimitError": QueryLimitError}


@dataclass(frozen=True, slots=True)
class Question:
    """One request; `accept` is what its answer should be written in. `name`: by which the service knows it when it
    comes again, for what would not be the same twice.
    """

    method: str
    path: str
    body: bytes | None = None
    content_type: str = "text/plain"
    accept: str = "*/*"
    name: str | None = None

    def to(self, base: str) -> Request:
        """Return it as urllib's."""
        headers = {"content-type": self.content_type, "accept": self.accept}
        if self.name is not None:
            headers["idempotency-key"] = self.name
        return Request(base + self.path, self.body, headers, method=self.method)  # noqa: S310 - users give the URLs


def ask(bases: Callable[[], Sequence[str]], question: Question, wait_s: float = 0.0) -> bytes:
    """Return the answer of the first instance that gives one; `bases` is looked at anew for each try.

    `wait_s`: how much longer than usual the answer may take. Verbs are idempotent, or have a name, so asking again is
    harmless.
    TransientError where nobody has answered after some 15 s of trying; what the service refuses is raised as its error.
    """
    failed, lost = "no URL is known", False
    for attempt in range(_TRIES):
        known = bases()
        if known:
            try:
                with urlopen(question.to(known[attempt % len(known)]), timeout=_ANSWER_S + wait_s) as response:  # noqa: S310
                    found: bytes = response.read()
                    return found
            except HTTPError as error:
                answer = _rest_of(error)
                if lost and question.method == "DELETE" and error.code == HTTPStatus.NOT_FOUND:
                    return b""  # it was done when the answer was lost
                lost = lost or answer is None
                if answer is not None and error.code != HTTPStatus.SERVICE_UNAVAILABLE:
                    raise refusal(answer, error.code) from error
                failed = str(error) if answer is None else answer.decode("utf-8", "replace")
            except (OSError, HTTPException) as error:
                failed, lost = str(error), lost or not isinstance(error, URLError)  # that one: nothing was asked
        time.sleep(_PAUSE_S)
    raise TransientError(f"{question.method} {question.path}: {failed}")


def _rest_of(error: HTTPError) -> bytes | None:
    """Return what a refusal says; None where the answer broke off."""
    try:
        return error.read()
    except (OSError, HTTPException):
        return None


def urls(by_comma: str) -> list[str]:
    """Return the URLs of a service's instances."""
    return [part.strip().rstrip("/") for part in by_comma.split(",") if part.strip()]


def with_query(path: str, **parameters: object) -> str:
    """Return the path with those parameters that are not None."""
    given = {name: value for name, value in parameters.items() if value is not None}
    return f"{path}?{urlencode(given)}" if given else path


def refusal(answer: bytes, code: int) -> PenstockError:
    """Return the error that a service has told (penstock.http.errors)."""
    try:
        found = json.loads(answer)
        name, message = found["error"], found["message"]
    except (ValueError, KeyError, TypeError):
        return PenstockError(f"HTTP {code}: {answer[:200]!r}")
    if (kind := _QUERY_ERRORS.get(name)) is not None:
        return kind(message, int(found["line"]), int(found["column"]), found.get("construct", ""))
    return _ERRORS.get(name, PenstockError)(message)
