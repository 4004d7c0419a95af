"""`penstock serve` as a process: real sockets, a listener while events come, SIGTERM, and what the next start has."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from contextlib import contextmanager
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

STREAM = "http://x/s"
PATH = "/streams/" + quote(STREAM, safe="")
QUERY = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s <http://x/p> ?o }"


@contextmanager
def served(*arguments, **options):
    """The process and its URL; it is stopped in order at the end."""
    command = [sys.executable, "-m", "penstock", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)
    try:
        line = process.stdout.readline()
        assert line.startswith("Penstock at http://127.0.0.1:"), line
        yield process, line.split()[2].rstrip("/")
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def asked(url, method="GET", body=None, **headers):
    with urlopen(Request(url, body, headers, method=method), timeout=30) as answer:
        return answer.read()


def test_live_answers_and_a_restart(tmp_path):
    data = str(tmp_path / "data")
    with served("--data-dir", data) as (_, url):
        asked(url + PATH, "PUT", b'{"batch_ms": 1000, "timing": "all"}')
        asked(f"{url}{PATH}/advance?timestamp=0", "POST")
        asked(url + "/queries/q", "PUT", QUERY.encode())
        asked(
            url + "/sparql",
            "POST",
            b"INSERT DATA { <http://x/a> <http://x/p> 1 }",
            **{"content-type": "application/sparql-update"},
        )
        with urlopen(url + "/queries/q/results", timeout=30) as live:
            assert live.headers["content-type"].startswith("text/event-stream")
            for time in (500, 1500):
                asked(f"{url}{PATH}/events?timestamp={time}", "POST", f'<http://x/a> <http://x/p> "{time}" .'.encode())
            asked(f"{url}{PATH}/advance?timestamp=2000", "POST")
            found = {}
            while len(found) < 2:
                line = live.readline().decode()
                if line.startswith("data: "):
                    answer = json.loads(line[6:])
                    found[answer["time"]] = [row["o"]["value"] for row in answer["results"]["bindings"]]
            assert found == {1000: ["500"], 2000: ["1500"]}
            asked(url + "/queries/q", "DELETE")
            assert b"event: end" in live.read()
        asked(url + "/queries/again", "PUT", QUERY.encode())
    with served("--data-dir", data) as (_, url):
        assert json.loads(asked(url + "/stats"))["triples"] == 1
        assert list(json.loads(asked(url + "/queries"))) == ["again"]
        assert (
            json.loads(asked(url + "/sparql?query=" + quote("ASK { <http://x/a> <http://x/p> 1 }")))["boolean"] is True
        )


def test_listeners_do_not_hold_up_the_end_and_no_trace_is_printed(tmp_path):
    printed = tmp_path / "stderr.txt"
    with printed.open("w") as errors, served(stderr=errors) as (process, url):
        asked(url + PATH, "PUT", b'{"timing": "all"}')
        asked(url + "/queries/q", "PUT", QUERY.encode())
        with urlopen(url + "/queries/q/results", timeout=30) as one, urlopen(url + "/results", timeout=30) as page:
            process.send_signal(signal.SIGTERM)
            assert one.read() + page.read() == b"", "the streams end: no evaluation comes"
            assert process.wait(20) == 0
    assert printed.read_text() == ""


def test_an_occupied_port_is_reported(tmp_path):
    with served() as (_, url):
        port = url.rpartition(":")[2]
        second = subprocess.run(
            [sys.executable, "-m", "penstock", "serve", "--port", port],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert (second.returncode, second.stdout) == (1, "")
    assert f"cannot serve HTTP on 127.0.0.1:{port}" in second.stderr


@pytest.mark.parametrize("option", [["--port", "70000"], ["--checkpoint-s", "0"]])
def test_bad_options(option):
    found = subprocess.run(
        [sys.executable, "-m", "penstock", "serve", *option], check=False, capture_output=True, text=True, timeout=60
    )
    assert found.returncode == 2
