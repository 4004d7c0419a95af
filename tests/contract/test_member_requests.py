"""Members of query sets over HTTP and on the command line: the same requests to `penstock serve` and to a cluster."""

from __future__ import annotations

import json
import re
import threading
import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pyarrow as pa
import pytest
from starlette.applications import Starlette

import penstock
from penstock.cli.app import main
from penstock.engine.sets.member_excerpt import MAX_LISTED
from penstock.http import member_pages
from penstock.http.embedded import application
from penstock.http.web_server import WebServer
from penstock.services.coordinator import http_routes
from support.small_cluster import SmallCluster

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

IRI = "http://x/s"
TEXT = (
    f"REGISTER QUERY near (?user ?limit) AS SELECT ?o FROM STREAM <{IRI}> [RANGE 1s STEP 1s]"
    " WHERE { ?user <http://x/p> ?o FILTER (?o < ?limit) }"
)
ARROW = "application/vnd.apache.arrow.stream"


class Serve:
    """`penstock serve`."""

    name, options = IRI, ""

    def __init__(self) -> None:
        self._engine = penstock.Engine()
        self._server = WebServer(application(self._engine), "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.port}"

    def close(self) -> None:
        self._server.stop()
        self._engine.close()


class Cluster:
    """A coordinator, two query engines with servers of their own, and a thread in which they step."""

    name, options = "s", ""

    def __init__(self) -> None:
        self._lock, self._cluster = threading.Lock(), SmallCluster(engines=2, buckets=4)
        self._servers = []
        for engine in self._cluster.engines.values():
            server = WebServer(Starlette(routes=member_pages.routes(engine.member_lists.find)), "127.0.0.1", 0)
            engine.answer_at(f"http://127.0.0.1:{server.port}")
            self._servers.append(server)
        routes = http_routes.routes(self._cluster.coordinator, self._lock)
        self._servers.append(WebServer(Starlette(routes=routes), "127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._servers[-1].port}"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    @property
    def engines(self) -> Any:
        return self._cluster.engines.values()

    def _run(self) -> None:
        while not self._stop.wait(0.002):
            with self._lock:
                self._cluster.run(1)

    def close(self) -> None:
        self._stop.set()
        self._thread.join()
        for server in self._servers:
            server.stop()
        self._cluster.close()


class Split(Cluster):
    """A cluster whose query set has parts in both query engines."""

    options = "&parts=3"


class Requests:
    """Requests to a service with the query set `near`."""

    def __init__(self, service: Serve | Cluster) -> None:
        self.url, self._options = service.url, service.options
        self.http = httpx.Client(base_url=service.url, timeout=30)
        stream = {"iri": IRI, "timing": "all"}
        self.ok(self.http.put(f"/streams/{quote(service.name, safe='')}", json=stream))

    def ok(self, response: httpx.Response) -> Any:
        assert response.is_success, response.text
        return response.json()

    def register(self, *key: str) -> None:
        named = "&".join(f"key={name}" for name in key)
        self.ok(self.http.put(f"/queries/near?{named}{self._options}", content=TEXT))

    def add(self, *rows: dict[str, Any], **parameters: Any) -> httpx.Response:
        lines = "\n".join(map(json.dumps, rows))
        return self.http.post("/queries/near/members", content=lines, params=parameters)

    def remove(self, *rows: dict[str, Any], **parameters: Any) -> httpx.Response:
        lines = "\n".join(map(json.dumps, rows))
        return self.http.request("DELETE", "/queries/near/members", content=lines, params=parameters)

    def page(self, **parameters: Any) -> Any:
        deadline = time.monotonic() + 20
        while True:  # 503: the query engine does not evaluate the set yet
            response = self.http.get("/queries/near/members", params=parameters)
            if response.status_code != 503 or time.monotonic() > deadline:
                return self.ok(response)
            time.sleep(0.02)

    def await_count(self, count: int) -> None:
        deadline = time.monotonic() + 20
        while (found := self.page(limit=0)["count"]) != count:
            assert time.monotonic() < deadline, found
            time.sleep(0.02)

    def listed(self, **parameters: Any) -> list[str]:
        return self.in_order([each["member"] for each in self.page(**parameters)["members"]])

    def in_order(self, found: list[Any]) -> list[Any]:
        """Return members in the order in which they were added, which is also that of their numbers. Parts of a set
        are listed one after another.
        """
        return sorted(found, key=lambda each: int(re.findall("x/([0-9]+)", str(each))[0])) if self._options else found


@pytest.fixture(params=[Serve, Cluster, Split])
def requests(request: pytest.FixtureRequest) -> Iterator[Requests]:
    service = request.param()
    try:
        yield Requests(service)
    finally:
        service.close()


def row(number: int, limit: Any = 5) -> dict[str, Any]:
    return {"user": f"http://x/{number}", "limit": limit}


def test_members_are_added_listed_and_removed(requests):
    requests.register("user")
    assert requests.page() == {"count": 0, "members": [], "next": None}
    assert requests.add(row(0), row(1, 7)).is_success
    csv = {"content-type": "text/csv"}
    assert requests.http.post("/queries/near/members", content="user,limit\nhttp://x/2,2\n", headers=csv).is_success
    sink = pa.BufferOutputStream()
    table = pa.table({"limit": [1.5], "user": ["http://x/3"]})
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    arrow = {"content-type": ARROW}
    assert requests.http.post("/queries/near/members", content=bytes(sink.getvalue()), headers=arrow).is_success
    requests.await_count(4)
    double = {"type": "literal", "value": "1.5", "datatype": "http://www.w3.org/2001/XMLSchema#double"}
    page = requests.page()
    assert (page["count"], page["next"]) == (4, None)
    assert requests.in_order(page["members"]) == [
        {"member": f"http://x/{number}", "row": row(number, limit)} for number, limit in enumerate((5, 7, 2, double))
    ]
    assert requests.remove({"user": "http://x/1"}, {"user": "http://x/9"}, key="user").is_success
    requests.await_count(3)
    assert requests.listed() == ["http://x/0", "http://x/2", "http://x/3"]


def test_pages(requests):
    requests.register("user")
    assert requests.add(*map(row, range(10))).is_success
    requests.await_count(10)
    found, after = [], None
    while True:
        page = requests.page(limit=4, **({} if after is None else {"after": after}))
        assert (page["count"], len(page["members"]) <= 4) == (10, True)
        found += [each["member"] for each in page["members"]]
        after = page["next"]
        if after is None:
            break
    assert requests.in_order(found) == [f"http://x/{number}" for number in range(10)]
    assert requests.listed(member="http://x/7") == ["http://x/7"]
    assert requests.page(member="http://x/70") == {"count": 10, "members": [], "next": None}
    nothing = requests.page(limit=0)
    assert requests.listed(limit=1, after=nothing["next"]) == found[:1]
    assert requests.add(row(3, 50)).is_success  # a replaced member is a new member
    deadline = time.monotonic() + 20
    while requests.page(member="http://x/3")["members"][0]["row"] != row(3, 50):
        assert time.monotonic() < deadline


@pytest.mark.parametrize(
    ("parameters", "status", "message"),
    [
        ({"limit": MAX_LISTED + 1}, 400, f"limit must be between 0 and {MAX_LISTED} (MAX_LISTED)"),
        ({"limit": -1}, 400, "limit must be between 0"),
        ({"limit": "many"}, 400, "limit is no whole number: 'many'"),
        ({"after": "x"}, 400, "after is no `next` of a page"),
        ({"after": "begun.1"}, 409, "begin with the first page"),
    ],
)
def test_wrong_pages(requests, parameters, status, message):
    requests.register("user")
    assert requests.add(row(0)).is_success
    requests.await_count(1)
    part = requests.page(limit=0)["next"].rpartition(":")  # of a split set, the bucket
    if parameters.get("after") == "begun.1":
        parameters = {"after": f"{part[0]}{part[1]}begun.1"}
    refused = requests.http.get("/queries/near/members", params=parameters)
    assert refused.status_code == status
    assert message in refused.json()["message"]


def test_requests_with_another_key_or_name_change_nothing(requests):
    requests.register("user")
    for verb in (requests.add, requests.remove):
        refused = verb(row(0), key=["limit", "user"])
        assert (refused.status_code, refused.json()["error"]) == (400, "DataError")
        assert "the key of query set near is user, not limit, user" in refused.json()["message"]
    assert requests.add(row(0), key="user").is_success
    requests.await_count(1)
    for method in ("GET", "POST", "DELETE"):
        assert requests.http.request(method, "/queries/far/members").status_code == 404


def test_a_key_of_several_columns(requests):
    requests.register("user", "place")
    assert requests.add(*(row(n) | {"place": place} for n, place in enumerate("aü"))).is_success
    requests.await_count(2)
    keys = ['["http://x/0", "a"]', '["http://x/1", "ü"]']
    assert requests.listed() == keys
    assert row(0) | {"place": "a"} in [each["row"] for each in requests.page()["members"]]
    assert requests.listed(member='["http://x/1","\\u00fc"]') == keys[1:]


def test_the_command_line(requests, tmp_path: Path, capfd, monkeypatch):
    def run(*arguments: str) -> str:
        assert main(["members", *arguments]) == 0
        return capfd.readouterr().out

    monkeypatch.setenv("PENSTOCK_URL", requests.url)
    monkeypatch.setattr("penstock.cli.local.members.REQUEST_BYTES", 100)  # several requests a file
    requests.register("user")
    requests.page()
    (tmp_path / "users.csv").write_text("user,limit\n" + "".join(f"http://x/{n},{n}\n" for n in range(20)))
    (tmp_path / "more.json").write_text(json.dumps([row(20, 20), row(21, 21)]))
    ids = pa.array(["http://x/22"]).dictionary_encode()
    with pa.ipc.new_file(tmp_path / "last.arrow", pa.schema([("user", ids.type), ("limit", pa.int64())])) as writer:
        writer.write_table(pa.table({"user": ids, "limit": [22]}))
    assert run("add", "near", str(tmp_path / "users.csv")).startswith("20 ")
    assert run("add", "near", str(tmp_path / "more.json")).startswith("2 ")
    assert run("add", "near", str(tmp_path / "last.arrow")).startswith("1 ")
    requests.await_count(23)
    assert run("count", "near") == "23\n"
    lines = run("list", "near").splitlines()
    assert requests.in_order([json.loads(line) for line in lines]) == [row(n, n) for n in range(23)]
    assert run("list", "near", "--limit", "2").splitlines() == lines[:2]
    assert run("list", "near", "--member", "http://x/7").splitlines() == requests.in_order(lines)[7:8]
    (tmp_path / "listed.jsonl").write_text("\n".join(lines[:21]))
    assert run("remove", "near", str(tmp_path / "listed.jsonl")).startswith("21 ")
    requests.await_count(2)
    assert run("add", "near", str(tmp_path / "listed.jsonl")).startswith("21 ")
    requests.await_count(23)
    (tmp_path / "bad.csv").write_text("user\nhttp://x/1\n")
    assert main(["members", "add", "near", str(tmp_path / "bad.csv")]) == 1
    assert main(["members", "count", "far"]) == 1
    assert "one is missing" in capfd.readouterr().err


def test_a_split_set_has_members_in_both_engines():
    service = Split()
    try:
        requests = Requests(service)
        requests.register("user")
        assert requests.add(*map(row, range(30))).is_success
        requests.await_count(30)
        counts = [
            sum(len(feed.member) for bucket in engine.buckets.values() for feed in bucket.feeds.values())
            for engine in service.engines
        ]
        assert sum(counts) == 30
        assert min(counts) > 0
    finally:
        service.close()
