"""What strangers, other users and a network learn from a cluster whose security is on: nothing."""

from __future__ import annotations

import http.server
import os
import re
import socket
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from pyarrow import flight

pytest.importorskip("confluent_kafka")

from penstock.acls import Principal
from penstock.remote import Server
from support.captures import Capture
from support.cluster_load import BOUND_S
from support.secured_cluster import PREFIX, SecuredCluster, certified, listening_ports, secured_cluster
from support.strangers import anonymous, answers, reply

pytestmark = pytest.mark.xdist_group("broker")
ROOT = Path(__file__).resolve().parents[2]
TERM, EX, S = "conspicuous-zanzibar", "http://x/", "http://x/conspicuous-zanzibar/stream"
ROWS = f"""SELECT ?label FROM STREAM <{S}> [RANGE 1s STEP 1s] FROM <urn:x-penstock:stored>
WHERE {{ ?road <{EX}speed> ?speed ; <{EX}{TERM}> ?label }}"""
SERVICES = 6  # processes, and ports of HTTP
OTHERS = 3  # ports of Flight, leases and the data plane
STRANGER = 65_534  # a user without rights: "nobody"
ASK_HEALTH, HEALTHY = b"GET /health/live HTTP/1.0\r\n\r\n", b'"alive":true'
NOT_ROOT = "only root can capture packets and act as another user"


@dataclass
class Watched:
    """A cluster that has worked, and the traffic meanwhile."""

    cluster: SecuredCluster
    ports: set[int]
    kafka: int
    capture: Capture | None


@pytest.fixture(scope="module")
def secured(broker_jars):
    del broker_jars  # only for its means
    with secured_cluster() as (cluster, guarded):
        until(lambda: len(listening_ports(cluster.pids())) == SERVICES + OTHERS)
        ports = listening_ports(cluster.pids())
        with ExitStack() as stack:
            capture = None
            with suppress(PermissionError):
                capture = stack.enter_context(Capture({*ports, guarded.port}))
            work(cluster, guarded, ports)
        yield Watched(cluster, ports, guarded.port, capture)


def work(cluster, guarded, ports):
    """All that users do. Their events, queries and answers contain TERM."""
    with cluster.client(guarded, Principal.consumer) as client, cluster.client(guarded, Principal.producer) as producer:
        client.load(f'<{EX}{TERM}/a> <{EX}{TERM}> "{TERM} A" .'.encode(), format="turtle")
        client.declare_stream(S, name="s", timing=[EX + "speed"], batch_ms=100)
        query = client.register(ROWS, name="rows", topic=f"{PREFIX}.results.rows")
        producer.push("s", f'<{EX}{TERM}/a> <{EX}speed> 5 ; <{EX}says> "{TERM} says" .', 1_500, format="turtle")
        producer.push("s", f"{TERM} is not RDF", 1_600)
        producer.advance("s", 4_000)
        until(lambda: f"{TERM} A" in [str(row["label"]) for found in query.poll() for row in found.answer])
        client.update(f"INSERT DATA {{ <{EX}{TERM}/b> <{EX}{TERM}> '{TERM} B' }}")
        client.update(f"INSERT {{ ?s <{EX}new> '{TERM} C' }} WHERE {{ ?s <{EX}{TERM}> '{TERM} B' }}")
        assert len(list(client.query(f"SELECT * {{ ?s <{EX}new> '{TERM} C' }}"))) == 1
        until(client.dead_letters)
    served = 0
    for port in ports:
        with suppress(OSError):
            served += b"penstock_" in cluster.get(f"https://127.0.0.1:{port}/metrics")
    assert served == SERVICES


def until(condition):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def routes():
    """All paths of all services, and some that other software has."""
    found = {"/", "/login", "/docs", "/openapi.json", "/page", "/../metrics", "/%2e%2e/health/live", "//metrics"}
    for document in (ROOT / "docs/openapi").glob("*.yaml"):
        paths = yaml.safe_load(document.read_text(encoding="utf-8"))["paths"]
        found |= {re.sub(r"\{\w+\}", "rows", path) for path in paths}
    return found


def exposed(ports, folder, forbidden):
    """What the ports tell strangers. `forbidden`: texts that not even an error may contain."""
    certified(folder, "tls")
    with ThreadPoolExecutor(len(ports)) as threads:
        asked = threads.map(lambda port: list(answers(port, routes(), folder / "certificates")), ports)
        found = [answer for each in asked for answer in each]
    assert {answer.port for answer in found} == set(ports)
    return [each for each in found if not each.harmless or any(text in each.text for text in forbidden)]


# ---- doors
def test_no_door_answers_without_credentials(secured, tmp_path):
    forbidden = [TERM.encode(), *secured.cluster.secrets().values()]
    assert exposed(secured.ports, tmp_path, forbidden) == []
    healthy = [port for port in secured.ports if HEALTHY in reply(port, ASK_HEALTH, anonymous())]
    assert len(healthy) == SERVICES, "the scan speaks HTTPS with all services"
    assert listening_ports(secured.cluster.pids()) == secured.ports, "the services still run"


class Welcoming(http.server.BaseHTTPRequestHandler):
    """Answers every request."""

    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


class OpenFlight(flight.FlightServerBase):
    """Lists its flights to all clients."""

    def list_flights(self, context, criteria):
        return iter([])


def test_the_scan_finds_open_doors(tmp_path):
    web = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Welcoming)
    threading.Thread(target=web.serve_forever, daemon=True).start()
    plane = Server("127.0.0.1", 0, bytes(16), transport="tcp")
    with OpenFlight("grpc://127.0.0.1:0") as served:
        ports = {web.server_port, plane.port, served.port}
        assert ports <= listening_ports({os.getpid()})
        found = {(answer.port, answer.asked) for answer in exposed(ports, tmp_path, [])}
    web.shutdown()
    web.server_close()
    assert (web.server_port, "plain: HTTP/1.1") in found
    assert (plane.port, "plain: hello of the data plane") in found
    assert (served.port, "Flight by grpc") in found


# ---- users of the same machines
@pytest.mark.skipif(os.geteuid() != 0, reason=NOT_ROOT)
def test_other_users_find_no_secret_and_no_data(secured):
    cluster, pids = secured.cluster, secured.cluster.pids()
    shared = {path for pid in pids for path in mapped(pid) if path.parts[:3] == ("/", "dev", "shm")}
    assert len(shared) >= cluster.shards, "the stores' regions"
    looked_for = [TERM.encode(), *cluster.secrets().values()]
    lines = [f"/proc/{path.name}/{name}" for path in Path("/proc").glob("[0-9]*") for name in ("cmdline", "environ")]
    assert stranger(["grep", "-rlasF", "-f", "-", *lines, str(cluster.base), *map(str, shared)], looked_for) == []
    public = cluster.base / "public"
    public.write_bytes(looked_for[1])
    assert stranger(["grep", "-rlasF", "-f", "-", str(cluster.base)], looked_for) == [str(public)], (
        "it looks everywhere"
    )
    public.unlink()
    private = [*shared, *(Path(f"/proc/{pid}/{name}") for pid in pids for name in ("environ", "mem", "maps"))]
    for path in private:
        assert stranger(["sh", "-c", 'cat "$0" > /dev/null && echo readable', str(path)], []) == [], path


def mapped(pid):
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    return {Path(columns[5]) for line in lines if len(columns := line.split(maxsplit=5)) == 6}


def stranger(command, given):
    """The lines that a command of a user without rights prints. `given`: lines of its input."""
    text = b"\n".join(given)
    done = subprocess.run(
        command, check=False, input=text, capture_output=True, user=STRANGER, group=STRANGER, extra_groups=[]
    )
    return done.stdout.decode().splitlines()


def test_logs_command_lines_and_environments_contain_no_secret(secured):
    secrets, pids = secured.cluster.secrets(), secured.cluster.pids()
    logs = [*secured.cluster.directory.glob("*.log"), *(secured.cluster.base / "broker").rglob("*.log")]
    assert len(logs) > SERVICES
    processes = [Path(f"/proc/{pid}/{name}") for pid in pids for name in ("cmdline", "environ")]
    found = {
        (str(path), name) for path in (*logs, *processes) for name in secrets if secrets[name] in path.read_bytes()
    }
    assert found == set()
    assert {path.stat().st_mode & 0o077 for path in processes if path.name == "environ"} == {0}


# ---- the network
def test_a_network_sees_no_text_and_no_secret(secured):
    if (capture := secured.capture) is None:
        pytest.skip(NOT_ROOT)
    assert capture.dropped == 0
    looked_for = [TERM.encode(), b"says", b"Bearer", *secured.cluster.secrets().values()]
    for port in (*secured.ports, secured.kafka):
        flows = capture.of(port)
        assert sum(len(flow.data) for flow in flows) > 0, f"nothing seen of port {port}"
        assert [text for flow in flows for text in looked_for if text in flow.data] == [], port
        begun = {flow.data[:2] for flow in flows if flow.begun and flow.data}
        assert begun <= {b"\x16\x03"}, f"port {port}: not TLS"


@pytest.mark.skipif(os.geteuid() != 0, reason=NOT_ROOT)
def test_the_capture_sees_plain_text():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with Capture({port}) as capture, closing(socket.create_connection(("127.0.0.1", port))) as there:
            here, _ = listener.accept()
            there.sendall(b"conspicuous-")
            time.sleep(0.1)
            there.sendall(b"zanzibar")
            time.sleep(0.5)
            here.close()
    assert [flow.data for flow in capture.of(port) if flow.target == port] == [TERM.encode()]
