"""Declares the streams and registers the queries of the chart's values: `declare.py FOLDER`.

A declaration that is there already, the same, has no effect. Exit code 1: a coordinator refused one, and its message
is on standard error.
"""

from __future__ import annotations

import json
import os
import ssl
import sys
import time
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import Request, urlopen

ATTEMPT_S, PAUSE_S, GIVE_UP_S = 30.0, 2.0, 600.0
UNAVAILABLE = range(500, 600)


def put(path: str, body: bytes, deadline: float) -> None:
    """Send a request until a coordinator answers. HTTPError if it refuses."""
    ca = os.environ.get("CA")
    context = ssl.create_default_context(cafile=ca) if ca else None
    request = Request(os.environ["COORDINATORS"] + path, body, method="PUT")  # noqa: S310 - the chart's own address
    if "TOKEN" in os.environ:
        request.add_header("authorization", f"Bearer {os.environ['TOKEN']}")
    while True:
        try:
            with urlopen(request, timeout=ATTEMPT_S, context=context):  # noqa: S310
                return
        except HTTPError as error:
            if error.code not in UNAVAILABLE or time.monotonic() > deadline:
                raise
        except (URLError, OSError):
            if time.monotonic() > deadline:
                raise
        time.sleep(PAUSE_S)


def main(folder: Path) -> int:
    """Declare the streams, then register the queries."""
    streams = json.loads((folder / "streams.json").read_text(encoding="utf-8"))
    queries = json.loads((folder / "queries.json").read_text(encoding="utf-8"))
    declarations = {f"/streams/{quote(name, safe='')}": json.dumps(each) for name, each in streams.items()}
    declarations |= {f"/queries/{quote(name, safe='')}": text for name, text in queries.items()}
    deadline = time.monotonic() + GIVE_UP_S
    for path, body in declarations.items():
        try:
            put(path, body.encode(), deadline)
        except HTTPError as error:
            sys.stderr.write(f"{path}: {error.code} {error.read().decode()}\n")
            return 1
        sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
