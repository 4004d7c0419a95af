"""Asking over HTTP: what is asked again."""

from __future__ import annotations

import socket
from threading import Thread

import pytest

from penstock.client.asking import Question, ask
from penstock.errors import DataError

_WHOLE = b'HTTP/1.1 400 Bad Request\r\ncontent-length: 40\r\n\r\n{"error": "DataError", "message": "bad"} '


@pytest.mark.parametrize("status", [b"200 OK", b"400 Bad Request"])
def test_an_answer_that_breaks_off_is_asked_for_again(status):
    answers = [b"HTTP/1.1 " + status + b"\r\ncontent-length: 100\r\n\r\nhalf", b"no HTTP\r\n\r\n", _WHOLE]
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for answer in answers:
                with server.accept()[0] as connection:
                    connection.recv(65_536)
                    connection.sendall(answer)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(DataError, match="bad"):
            ask(lambda: [url], Question("GET", "/streams"))
        thread.join(5.0)
