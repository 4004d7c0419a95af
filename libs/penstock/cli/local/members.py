"""`penstock members`: adds, removes, lists and counts the members of a query set over HTTP. The service is `penstock
serve` or the coordinator of a cluster.
"""

from __future__ import annotations

import json
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

import pyarrow as pa
import typer

from penstock.cli.local.member_tables import read_members
from penstock.client.service_requests import Credentials, ServiceClient, ServiceRequest, urls, with_query
from penstock.engine.sets.member_excerpt import MAX_LISTED
from penstock.engine.sets.tables import as_table
from penstock.errors import DataError
from penstock.http.member_rows import ARROW
from penstock.query.parser import declared_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator

REQUEST_BYTES = 16 << 20
"""Approximate maximum size of a request's body. Larger tables are sent in several requests."""

app = typer.Typer(help="Add, remove, list and count the members of a query set.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="Name of the query set.")]
File = Annotated[str, typer.Argument(help="Members: .csv with a header, .json, .jsonl or .arrow.")]
Url = Annotated[
    str,
    typer.Option(envvar="PENSTOCK_URL", help="`penstock serve` or the coordinators of a cluster (comma-separated)."),
]
Token = Annotated[str | None, typer.Option(envvar="PENSTOCK_TOKEN", help="Bearer token.")]
Ca = Annotated[str | None, typer.Option(help="CA (PEM) of the service's certificate; default: those of the system.")]
COORDINATOR = "http://localhost:7880"


@app.command("add")
def add(name: Name, file: File, url: Url = COORDINATOR, token: Token = None, ca: Ca = None) -> None:
    """Add the rows of a file as members, or replace members with the same keys."""
    with closing(MemberClient(url, token, ca)) as requests:
        print(_counted(requests.change("POST", name, file)))


@app.command("remove")
def remove(name: Name, file: File, url: Url = COORDINATOR, token: Token = None, ca: Ca = None) -> None:
    """Remove the members whose keys are in a file. The file needs only the columns of the key."""
    with closing(MemberClient(url, token, ca)) as requests:
        print(_counted(requests.change("DELETE", name, file)))


@app.command("list")
def list_members(
    name: Name,
    member: Annotated[str | None, typer.Option(help="Key of the only member to list.")] = None,
    limit: Annotated[int | None, typer.Option(min=0, help="Maximum number of members; default: all.")] = None,
    url: Url = COORDINATOR,
    token: Token = None,
    ca: Ca = None,
) -> None:
    """Print the members, one JSON object per line. `add` reads this format."""
    with closing(MemberClient(url, token, ca)) as requests:
        for row in requests.rows(name, member, limit):
            print(json.dumps(row, ensure_ascii=False))


@app.command("count")
def count(name: Name, url: Url = COORDINATOR, token: Token = None, ca: Ca = None) -> None:
    """Print the number of members."""
    with closing(MemberClient(url, token, ca)) as requests:
        print(requests.count(name))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The columns of a query set's members: all columns, and the columns of the key."""

    all: tuple[str, ...]
    key: tuple[str, ...]


class MemberClient:
    """Sends requests for members. `url`: the base URLs of the service's instances, comma-separated."""

    def __init__(self, url: str, token: str | None = None, ca: str | None = None) -> None:
        self._urls = urls(url)
        self._client = ServiceClient(Credentials(token, ca))

    def change(self, method: str, name: str, file: str) -> Counter[str]:
        """Add (POST) or remove (DELETE) the members in a file. Returns the sums of the numbers in the responses. Each
        request has its own effect, so after an error the earlier rows of a large file are changed.
        """
        columns = self._columns(name)
        names = columns.all if method == "POST" else columns.key
        table = as_table(read_members(file, names), names)
        total: Counter[str] = Counter()
        for body in _bodies(table):
            total.update(json.loads(self._send(ServiceRequest(method, _path(name), body, ARROW))))
        return total

    def rows(self, name: str, member: str | None, limit: int | None) -> Iterator[dict[str, Any]]:
        """Yield the rows of members, at most `limit` of them (None: all)."""
        after, left = None, limit
        while True:
            most = MAX_LISTED if left is None else min(left, MAX_LISTED)
            page = self._page(name, limit=most, after=after, member=member)
            yield from (each["row"] for each in page["members"])
            left = None if left is None else left - len(page["members"])
            after = page["next"]
            if after is None or left == 0:
                return

    def count(self, name: str) -> int:
        """Return the number of members."""
        return int(self._page(name, limit=0)["count"])

    def _page(self, name: str, **asked: object) -> dict[str, Any]:
        page: dict[str, Any] = json.loads(self._send(ServiceRequest("GET", with_query(_path(name), **asked))))
        return page

    def _columns(self, name: str) -> _Columns:
        found = json.loads(self._send(ServiceRequest("GET", _path(name).removesuffix("/members"))))
        if found.get("report") is None:
            raise DataError(f"{name} is a query: its text declares no parameters")
        parameters = declared_parameters(found["text"], found["base"])
        key = tuple(found["key"]) or parameters
        return _Columns(tuple(dict.fromkeys((*parameters, *key))), key)

    def _send(self, request: ServiceRequest) -> bytes:
        return self._client.send(lambda: self._urls, request)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()


def _path(name: str) -> str:
    return f"/queries/{quote(name, safe='')}/members"


def _counted(total: Counter[str]) -> str:
    return ", ".join(f"{number} {what}" for what, number in total.items()) or "0 rows"


def _bodies(table: pa.Table) -> Iterator[bytes]:
    """Yield the rows of a table as Arrow streams of about REQUEST_BYTES."""
    plain = pa.table([_plain(column) for column in table.columns], names=table.column_names)
    at_once = max(1, plain.num_rows * REQUEST_BYTES // max(plain.nbytes, REQUEST_BYTES))
    for first in range(0, plain.num_rows, at_once):
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, plain.schema) as writer:
            writer.write_table(plain.slice(first, at_once).combine_chunks())
        yield bytes(sink.getvalue())


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionary encoding, which requests must not have."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
