"""An OpenID Connect issuer on the loopback interface: discovery, a key set, tokens."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "penstock"
_KINDS = {
    "RS256": lambda: rsa.generate_private_key(65537, 2048),
    "PS256": lambda: rsa.generate_private_key(65537, 2048),
    "RS256-1024": lambda: rsa.generate_private_key(65537, 1024),
    "ES256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "ES384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "ES512": lambda: ec.generate_private_key(ec.SECP521R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate,
}


class SigningKey:
    """A key pair, and its public key as an entry of a key set."""

    def __init__(self, kid: str | None, algorithm: str = "ES256") -> None:
        self.kid, self.algorithm = kid, algorithm.partition("-")[0]
        self.private = _KINDS[algorithm]()
        kind = jwt.get_algorithm_by_name(self.algorithm)
        self.entry: dict[str, Any] = kind.to_jwk(self.private.public_key(), as_dict=True)
        self.entry |= {"use": "sig", "alg": self.algorithm} | ({} if kid is None else {"kid": kid})


class LocalIssuer:
    """Serves discovery and keys until it is closed. `requests`: paths that were asked for. `answer`: by path, bytes to
    send as the body, or a status to answer with.
    """

    def __init__(self, *keys: SigningKey, port: int = 0) -> None:
        self.keys = list(keys)
        self.requests: list[str] = []
        self.answer: dict[str, bytes | int] = {}
        self.pause_s = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                time.sleep(outer.pause_s)
                answer = outer.answer.get(self.path, outer.documents().get(self.path, 404))
                self.send_response(answer if isinstance(answer, int) else 200)
                if answer == 302:
                    self.send_header("location", outer.url + "/keys")
                self.end_headers()
                if isinstance(answer, bytes):
                    self.wfile.write(answer)

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.port = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def documents(self) -> dict[str, bytes]:
        discovery = {"issuer": self.url, "jwks_uri": f"{self.url}/keys"}
        return {"/.well-known/openid-configuration": json.dumps(discovery).encode(), "/keys": key_set(*self.keys)}

    def token(self, key: SigningKey | None = None, **claims: Any) -> str:
        return token(key or self.keys[0], self.url, **claims)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def key_set(*keys: SigningKey) -> bytes:
    return json.dumps({"keys": [key.entry for key in keys]}).encode()


def claims_of(issuer: str, **claims: Any) -> dict[str, Any]:
    """Return the claims of a valid token of role `read`. A claim given as None is left out."""
    now = int(time.time())
    made = {"iss": issuer, "aud": AUDIENCE, "sub": "alice", "iat": now, "exp": now + 60, "roles": ["staff"]} | claims
    return {name: value for name, value in made.items() if value is not None}


def token(key: SigningKey, issuer: str, headers: dict[str, Any] | None = None, **claims: Any) -> str:
    named = {} if key.kid is None else {"kid": key.kid}
    return jwt.encode(claims_of(issuer, **claims), key.private, key.algorithm, headers=named | (headers or {}))
