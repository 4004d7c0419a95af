"""An HTTP server that answers requests with given status codes, and remembers the requests."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self


class AnsweringServer:
    """Answers each PUT with the next status. `requests`: the path, body, method and authorization of each request."""

    def __init__(self, statuses: list[int]) -> None:
        self.requests: list[tuple[str, bytes, str, str | None]] = []
        outer, left = self, list(statuses)

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.requests.append((self.path, body, self.command, self.headers["authorization"]))
                self.send_response(left.pop(0))
                self.end_headers()
                self.wfile.write(b"said")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
