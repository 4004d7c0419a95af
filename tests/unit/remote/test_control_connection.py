"""The control connection: who may speak, and what is refused."""

from __future__ import annotations

import socket
import struct
import threading

import numpy as np
import pytest

from penstock.remote.control_connection import Connection, ControlError
from penstock.remote.control_server import ControlServer

SECRET = b"sixteen bytes or more"


def pair(ours: bytes = SECRET, theirs: bytes = SECRET) -> tuple[Connection, Connection]:
    a, b = socket.socketpair()
    made: list[Connection | ControlError] = []

    def accept() -> None:
        try:
            made.append(Connection(b, theirs, calling=False))
        except ControlError as error:
            made.append(error)

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        caller = Connection(a, ours, calling=True)
    finally:
        thread.join(10)
    assert isinstance(made[0], Connection)
    return caller, made[0]


@pytest.fixture(autouse=True)
def _no_options_of_tcp(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket.socket, "setsockopt", lambda *_: None)


def test_a_message_arrives_with_its_columns() -> None:
    engine, node = pair()
    engine.send({"do": "x"}, {"s": np.array([1, 2], np.uint64), "ts": np.array([-1]), "l": np.empty(0, np.uint32)})
    message, columns = node.receive()
    assert message == {"do": "x"}
    assert {name: column.tolist() for name, column in columns.items()} == {"s": [1, 2], "ts": [-1], "l": []}


def test_who_does_not_hold_the_secret_is_refused() -> None:
    with pytest.raises(ControlError) as refused:
        pair(theirs=b"another secret, as long")
    assert refused.value.fault in ("refused", "disconnected")  # whichever side finds out first


@pytest.mark.parametrize(
    "garbage",
    [
        struct.pack("<I", 1 << 30),
        struct.pack("<I", 2) + b"[]",
        struct.pack("<I", 3) + b"\xff\xfe\xfd",
        struct.pack("<I", 40) + b'{"columns": [["s", "u64", 1e18]]}'.ljust(40),
        struct.pack("<I", 40) + b'{"columns": [["s", "u64", -1]]}'.ljust(40),
        struct.pack("<I", 40) + b'{"columns": [["s", "f64", 1]]}'.ljust(40),
        b"\x01",
    ],
)
def test_garbage_is_an_error_and_nothing_else(garbage: bytes) -> None:
    engine, node = pair()
    engine._send_raw(garbage)
    engine.close()
    with pytest.raises(ControlError):
        node.receive()


class Nothing:
    """What a control server gives access to, where no request is answered."""

    def expire(self) -> None:
        pass


class Exhausted:
    """A listener without a descriptor for the first connection."""

    def __init__(self, real):
        self.real, self.failed = real, False

    def __getattr__(self, name):
        return getattr(self.real, name)

    def accept(self):
        if not self.failed:
            self.failed = True
            raise OSError(24, "Too many open files")
        return self.real.accept()


def test_a_connection_that_cannot_be_taken_does_not_end_the_server():
    server = ControlServer(Nothing(), "127.0.0.1", 0, bytes(16), 0)
    server._listener = Exhausted(server._listener)
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    Connection.to(server.address, bytes(16), 5).close()
    server.close()
    serving.join(10)
    assert not serving.is_alive()


def test_a_closed_server_ends_its_connections_and_threads():
    """A thread that went on would hold the server's shards until its engine disconnects."""
    server = ControlServer(Nothing(), "127.0.0.1", 0, SECRET, 0)
    serving = threading.Thread(target=server.run, daemon=True)
    serving.start()
    before = set(threading.enumerate())
    connection = Connection.to(server.address, SECRET, 5)
    server.close()
    serving.join(10)
    assert not serving.is_alive()
    assert set(threading.enumerate()) <= before
    with pytest.raises(ControlError):
        connection.receive()


def test_a_handshake_has_one_deadline_however_its_bytes_come(monkeypatch: pytest.MonkeyPatch) -> None:
    """A byte in each timeout would keep a place of the server for ever."""
    monkeypatch.setattr("penstock.remote.control_server._HANDSHAKE_S", 0.5)
    server = ControlServer(Nothing(), "127.0.0.1", 0, SECRET, 0)  # type: ignore[type-var]
    threading.Thread(target=server.run, daemon=True).start()
    with socket.create_connection((server.address.host, server.address.port), 10) as slow:
        cut, pause, sent = False, threading.Event(), 0
        while sent < 400:
            sent += 1
            try:
                slow.sendall(b"p")
            except OSError:
                cut = True
                break
            slow.settimeout(0.05)
            try:
                while slow.recv(4_096):
                    pass
                cut = True
                break
            except TimeoutError:
                pause.wait(0.05)
            except OSError:
                cut = True
                break
        assert cut, "the server waits on"
        assert sent < 40, "the whole greeting has arrived: each byte was given a time of its own"
    server.close()
