"""`penstock serve --durability commit`: writes that were answered with 2xx survive kill -9, each once; full disks."""

from __future__ import annotations

import http.client
import json
import random
import resource
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from urllib.parse import quote, urlsplit

import pytest

STREAM = "http://x/s"
PATH = "/streams/" + quote(STREAM, safe="")
QUERY = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s <http://x/p> ?o }"
CLIENTS, ROUNDS = 6, 4


@contextmanager
def served(data, *arguments):
    """The process and its address; it is killed at the end, if it still runs."""
    command = [sys.executable, "-m", "penstock", "serve", "--port", "0", "--data-dir", str(data), *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        assert line.startswith("Penstock at http://127.0.0.1:"), line
        yield process, urlsplit(line.split()[2]).netloc
    finally:
        process.kill()
        process.wait(30)
        process.stdout.close()


def asked(address, method, path, body=b"", **headers):
    connection = http.client.HTTPConnection(address, timeout=30)
    try:
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def rows(address, text):
    status, body = asked(address, "GET", "/sparql?query=" + quote(text))
    assert status == 200, body
    return json.loads(body)["results"]["bindings"]


@dataclass
class Clients:
    """Threads that write until the server is gone, and what was acknowledged to them."""

    numbers: count = field(default_factory=count)
    tried: set[int] = field(default_factory=set)
    acknowledged: set[int] = field(default_factory=set)

    def write(self, address):
        connection = http.client.HTTPConnection(address, timeout=30)
        try:
            while True:
                number = next(self.numbers)
                self.tried.add(number)
                if number % 3:
                    path, body = f"{PATH}/events?timestamp={number}", f"<http://x/{number}> <http://x/p> {number} ."
                    kind, expected = "text/turtle", 202
                else:
                    path, body = "/update", f"INSERT DATA {{ <http://x/{number}> <http://x/u> {number} }}"
                    kind, expected = "text/plain", 204
                connection.request("POST", path, body, {"content-type": kind})
                answer = connection.getresponse()
                answer.read()
                assert answer.status == expected
                self.acknowledged.add(number)
        except (OSError, http.client.HTTPException):
            pass  # the server is gone; whether it took this one is not known
        finally:
            connection.close()


@pytest.mark.parametrize("seed", [1])
def test_acknowledged_writes_survive_kill_9_and_are_there_once(tmp_path, seed):
    rng, clients = random.Random(seed), Clients()
    for round_ in range(ROUNDS + 1):
        options = ("--checkpoint-s", "0.5") if round_ % 2 else ()  # some rounds are killed about a checkpoint
        with served(tmp_path / "data", *options) as (process, address):
            if round_ == 0:
                declared = b'{"batch_ms": 1000, "timing": [], "lateness_ms": 100000000}'
                assert asked(address, "PUT", PATH, declared)[0] == 200
                assert asked(address, "PUT", "/queries/q", QUERY.encode())[0] == 200
            if round_ == ROUNDS:
                check(address, clients)
                return
            threads = [threading.Thread(target=clients.write, args=(address,)) for _ in range(CLIENTS)]
            for thread in threads:
                thread.start()
            before = len(clients.acknowledged)
            deadline = time.monotonic() + 60
            while len(clients.acknowledged) < before + 30 + rng.randrange(300) and time.monotonic() < deadline:
                time.sleep(rng.random() / 100)
            process.send_signal(signal.SIGKILL)
            for thread in threads:
                thread.join(60)


def check(address, clients):
    events = json.loads(asked(address, "GET", "/stats")[1])["streams"][STREAM]["events"]
    assert asked(address, "POST", f"{PATH}/advance?timestamp=200000000&skip=true")[0] == 204
    found = {
        p: [int(row["o"]["value"]) for row in rows(address, f"SELECT ?o {{ ?s <http://x/{p}> ?o }}")] for p in "pu"
    }
    there = set(found["p"]) | set(found["u"])
    assert len(clients.acknowledged) > 100
    assert clients.acknowledged - there == set()
    assert there - clients.tried == set()
    assert events == len(found["p"])  # none was taken twice
    assert len(clients.tried) - len(clients.acknowledged) <= CLIENTS * ROUNDS


def test_evaluations_fire_again_with_the_next_attempt_and_after_leaves_out_what_was_read(tmp_path):
    with served(tmp_path / "data") as (process, address):
        assert asked(address, "PUT", PATH, b'{"batch_ms": 1000, "timing": "all"}')[0] == 200
        assert asked(address, "POST", f"{PATH}/advance?timestamp=0")[0] == 204
        assert asked(address, "PUT", "/queries/q", QUERY.encode())[0] == 200
        assert asked(address, "POST", f"{PATH}/advance?timestamp=3000")[0] == 204
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with served(tmp_path / "data") as (_, address):
        for after, expected in (("", [1000, 2000, 3000]), ("?after=2000", [3000])):
            found = events_of(address, f"/queries/q/results{after}", len(expected))
            assert [(e["time"], e["attempt"]) for e in found] == [(time_ms, 2) for time_ms in expected]


def events_of(address, path, number):
    connection = http.client.HTTPConnection(address, timeout=30)
    connection.request("GET", path)
    live, found = connection.getresponse(), []
    while len(found) < number:
        line = live.readline().decode()
        if line.startswith("data: "):
            found.append(json.loads(line[6:]))
    connection.close()
    return found


def test_a_full_disk_is_a_clear_error_and_the_service_goes_on(tmp_path):
    event = f"{PATH}/events?timestamp=1", b"<http://x/a> <http://x/p> <http://x/b> ."
    with served(tmp_path / "data", "--checkpoint-s", "3600") as (process, address):
        assert asked(address, "PUT", PATH, b'{"batch_ms": 1000, "timing": "all"}')[0] == 200
        size = json.loads(asked(address, "GET", "/stats")[1])["log"]["bytes"]
        _, most = resource.prlimit(process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (size + 20, most))
        for _ in range(2):
            status, body = asked(address, "POST", *event)
            reply = json.loads(body)
            assert (status, reply["error"]) == (503, "StorageError")
            assert "nothing was changed" in reply["message"]
        assert json.loads(asked(address, "GET", "/stats")[1])["streams"][STREAM]["events"] == 0
        assert asked(address, "GET", "/sparql?query=ASK%7B%7D")[0] == 200
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))
        assert asked(address, "POST", *event)[0] == 202
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with served(tmp_path / "data") as (_, address):
        assert json.loads(asked(address, "GET", "/stats")[1])["streams"][STREAM]["events"] == 1


def test_what_a_crash_loses_without_commit_is_what_came_after_the_last_checkpoint(tmp_path):
    with served(tmp_path / "data", "--durability", "checkpoint", "--checkpoint-s", "3600") as (process, address):
        assert asked(address, "PUT", PATH, b'{"timing": "all"}')[0] == 200
        process.send_signal(signal.SIGKILL)
        process.wait(30)
    with served(tmp_path / "data") as (_, address):
        assert json.loads(asked(address, "GET", "/streams")[1]) == {}
