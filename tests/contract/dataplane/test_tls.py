"""TLS between stores and query engines: who is let in, what a network sees, and what hostile peers achieve."""

from __future__ import annotations

import socket
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from penstock.core import _native as native
from penstock.errors import DataPlaneError, StorageError
from penstock.remote import Server, connect, control_server
from penstock.remote.control_connection import Connection, ControlError
from penstock.remote.control_server import ControlServer
from support.plane_regions import SECRET, Node, expected, peer_certificates, peer_tls, read, words

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.remote.tls import PeerTls

NODE = 5
WORDS = 200_000
GARBAGE = (
    b"\x00" * 64,
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\xff\xff" + b"\x41" * 70_000,
    b"\x16\x03\x01\x00\x05hello" * 1_000,
    b"\x15\x03\x03\x00\x02\x02\x28",
)


class Relay:
    """Forwards connections to a port, and records every byte in both directions."""

    def __init__(self, port: int) -> None:
        self.seen = bytearray()
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self._listener.accept()
                there = socket.create_connection(("127.0.0.1", self._target))
                for a, b in ((here, there), (there, here)):
                    threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    def _copy(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self.seen += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._listener.close()


class Answering(ControlServer[Any]):
    """Sends back what it is asked."""

    def _do(self, message: dict[str, Any], columns: Any) -> dict[str, Any]:
        return {"asked": message["do"], "rows": int(columns["rows"].sum()) if "rows" in columns else 0}


class Nothing:
    """What a control server serves where leases do not matter."""

    def expire(self) -> None:
        pass


@contextmanager
def answering(tls: PeerTls | None) -> Iterator[Answering]:
    server = Answering(Nothing(), "127.0.0.1", 0, SECRET, 0, tls)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield server
    finally:
        server.close()
        thread.join(10)


@pytest.fixture
def ours(tmp_path: Path) -> PeerTls:
    return peer_tls(tmp_path / "ours")


@pytest.fixture
def theirs(tmp_path: Path) -> PeerTls:
    return peer_tls(tmp_path / "theirs")


@pytest.fixture
def node(tmp_path: Path, ours: PeerTls) -> Node:
    (tmp_path / "regions").mkdir()
    made = Node(tmp_path / "regions", tls=ours, transport="tcp")
    made.add(WORDS)
    return made


def open_plane(port: int, tls: PeerTls | None, secret: bytes = SECRET) -> native.Plane:
    return connect(NODE, "127.0.0.1", port, secret, "tcp", tls=tls)


def fault(port: int, tls: PeerTls | None, secret: bytes = SECRET) -> str:
    with pytest.raises(DataPlaneError) as caught:
        open_plane(port, tls, secret)
    return caught.value.fault


def works(node: Node, tls: PeerTls) -> None:
    asked = [(0, 7, 100), (0, 0, WORDS)]
    assert np.array_equal(read(open_plane(node.server.port, tls), NODE, asked), expected(asked))


@pytest.mark.parametrize("encrypted", [True, False])
def test_a_network_sees_no_word_of_a_region_and_no_message(tmp_path: Path, ours: PeerTls, encrypted: bool) -> None:
    tls = ours if encrypted else None
    (tmp_path / "regions").mkdir()
    node = Node(tmp_path / "regions", tls=tls, transport="tcp")
    node.add(1_000)
    with answering(tls) as server:
        data, control = Relay(node.server.port), Relay(server.address.port)
        assert np.array_equal(read(open_plane(data.port, tls), NODE, [(0, 0, 1_000)]), words(0, 0, 1_000))
        caller = Connection.to(type(server.address)("127.0.0.1", control.port), SECRET, 5, tls)
        assert caller.ask({"do": "lease of a secret engine"})["asked"] == "lease of a secret engine"
        caller.close()
        control.close()
        data.close()
    plain = not encrypted
    assert (words(0, 500, 2).tobytes() in data.seen) is plain
    assert (str(node.path(0)).encode() in data.seen) is plain
    assert (b"lease of a secret engine" in control.seen) is plain
    assert len(data.seen) > 8_000
    assert len(control.seen) > 100


def test_who_has_no_certificate_of_the_ca_gets_nothing(node: Node, ours: PeerTls, theirs: PeerTls) -> None:
    assert fault(node.server.port, None) in ("disconnected", "refused")
    assert fault(node.server.port, theirs) == "refused"
    assert fault(node.server.port, ours, b"another secret, as long as needed") == "refused"
    assert node.server.counters()["reads"] == 0
    works(node, ours)


def test_a_client_accepts_a_certificate_of_the_ca_for_the_host_only(tmp_path: Path, ours: PeerTls) -> None:
    other = peer_tls(tmp_path / "ours", "other", "store-7.example")
    server = Server("127.0.0.1", 0, SECRET, tls=other)
    with pytest.raises(DataPlaneError, match=r"certificate: .*mismatch") as caught:
        open_plane(server.port, ours)
    assert caught.value.fault == "refused"
    with answering(other) as control, pytest.raises(ControlError, match="certificate is not accepted") as refused:
        Connection.to(control.address, SECRET, 5, ours)
    assert refused.value.fault == "refused"


def test_a_client_with_certificates_does_not_speak_without_tls(tmp_path: Path, ours: PeerTls) -> None:
    server = Server("127.0.0.1", 0, SECRET)
    assert fault(server.port, ours) == "refused"
    with answering(None) as control, pytest.raises(ControlError):
        Connection.to(control.address, SECRET, 5, ours)


def test_garbage_ends_only_its_connection(node: Node, ours: PeerTls) -> None:
    with answering(ours) as control:
        for garbage in GARBAGE:
            for port in (node.server.port, control.address.port):
                with socket.create_connection(("127.0.0.1", port)) as stream, suppress(OSError):
                    stream.settimeout(10)
                    stream.sendall(garbage)
                    stream.shutdown(socket.SHUT_WR)
                    while stream.recv(1 << 16):
                        pass
            works(node, ours)
            with_columns = Connection.to(control.address, SECRET, 5, ours)
            with_columns.send(
                {"do": "sum"}, {"rows": np.arange(100_000, dtype=np.uint64), "none": np.empty(0, np.uint32)}
            )
            assert with_columns.receive()[0]["rows"] == 4_999_950_000
            with_columns.close()


def test_a_handshake_that_stalls_ends_at_a_time_limit(ours: PeerTls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_server, "_HANDSHAKE_S", 0.5)
    data = native.DataPlaneServer(native.ServedRegions(), "127.0.0.1", 0, SECRET, handshake_ms=500, tls=ours.identity)
    with answering(ours) as control, ExitStack() as stack:
        stalled = []
        for port in (data.port, control.address.port):
            for sent in (b"", b"\x16\x03\x01\x02\x00\x01"):
                stream = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
                stream.sendall(sent)
                stalled.append(stream)
        began = time.monotonic()
        for stream in stalled:
            stream.settimeout(20)
            with suppress(ConnectionResetError):
                while stream.recv(1 << 10):  # an alert, perhaps
                    pass
        assert time.monotonic() - began < 15
        while data.counters()["open"] and time.monotonic() - began < 15:
            time.sleep(0.01)  # a peer learns of the end before the server has counted it
        assert data.counters()["open"] == 0


def test_a_renewed_certificate_counts_for_the_next_connection(tmp_path: Path, node: Node, ours: PeerTls) -> None:
    plane = open_plane(node.server.port, ours)
    with answering(ours) as control:
        for name in ("tls.crt", "tls.key"):
            (tmp_path / "ours" / name).unlink()
        peer_certificates(tmp_path / "ours", "tls", "store-7.example")
        engine = peer_tls(tmp_path / "ours", "engine")
        assert np.array_equal(read(plane, NODE, [(0, 0, 8)]), expected([(0, 0, 8)]))
        assert fault(node.server.port, engine) == "refused"
        with pytest.raises(ControlError, match="certificate is not accepted"):
            Connection.to(control.address, SECRET, 5, engine)
        for name in ("tls.crt", "tls.key"):
            (tmp_path / "ours" / name).unlink()
        peer_certificates(tmp_path / "ours")
        works(node, engine)


def test_files_that_cannot_be_used_are_errors_with_their_name(tmp_path: Path, ours: PeerTls) -> None:
    files = peer_certificates(tmp_path / "ours")
    for broken in (files.ca, files.certificate, files.key):
        wrong = [
            str(path) if path != broken else str(tmp_path / "no") for path in (files.ca, files.certificate, files.key)
        ]
        with pytest.raises(StorageError, match="no"):
            native.TlsIdentity(*wrong)
    with pytest.raises(StorageError):
        native.TlsIdentity(str(files.ca), str(files.certificate), str(tmp_path / "ours" / "ca.key"))


def test_rdma_beside_tls_is_a_decision(ours: PeerTls, node: Node) -> None:
    with pytest.raises(DataPlaneError, match="RDMA does not encrypt"):
        connect(NODE, "127.0.0.1", node.server.port, SECRET, "rdma", tls=ours)
    with pytest.raises(DataPlaneError, match="RDMA does not encrypt"):
        Server("127.0.0.1", 0, SECRET, transport="rdma", tls=ours)
    plane = connect(
        NODE, "127.0.0.1", node.server.port, SECRET, "rdma", tls=ours, rdma_unencrypted=True, rdma_device="none"
    )
    assert plane.transport(NODE) == "tcp"  # where there is no device
