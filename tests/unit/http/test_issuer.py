"""JWTs of an issuer: which are accepted, and which keys (ADR 67). No network: the key set is a file."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt import get_algorithm_by_name
from starlette.testclient import TestClient

from penstock.engine import Engine
from penstock.errors import UnavailableError
from penstock.http.embedded import application
from penstock.http.security import Identity, Role, TokenFile, new_token
from penstock.http.security.identities import NoRoleError, RefusedTokenError
from penstock.http.security.issuer import MAX_TOKEN_CHARS, Issuer, IssuerSettings, roles_of
from penstock.http.security.key_sets import IssuerError, KeyFile, KeyUrl, check_url, parsed
from penstock.http.security.token_kinds import TokenKinds, identities_of
from support.oidc import AUDIENCE, SigningKey, claims_of, key_set, token

URL = "https://issuer.example/realm"
ROLES = {"staff": Role.READ, "apps": Role.WRITE, "ops": Role.ADMIN}
KEY = SigningKey("k1")
RSA = SigningKey("r1", "RS256")


@pytest.fixture
def opened(tmp_path):
    """Opens issuers with keys in a file, and closes them."""
    made = []

    def open_issuer(*keys: SigningKey, **settings) -> Issuer:
        path = tmp_path / "keys.json"
        path.write_bytes(key_set(*(keys or (KEY, RSA))))
        made.append(Issuer(IssuerSettings(URL, AUDIENCE, ROLES, jwks=str(path), **settings)))
        return made[-1]

    yield open_issuer
    for issuer in made:
        issuer.close()


def owner(issuer, text: str) -> Identity:
    return asyncio.run(issuer.owner(text))


def reason(issuer, text: str) -> str:
    with pytest.raises(RefusedTokenError) as caught:
        owner(issuer, text)
    assert not text or text[:200] not in str(caught.value)
    return str(caught.value)


def part(content) -> str:
    data = content if isinstance(content, bytes) else json.dumps(content).encode()
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unsigned(header: dict, signature: bytes = b"", **claims) -> str:
    return f"{part(header)}.{part(claims_of(URL, **claims))}.{part(signature)}"


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "ES384", "ES512", "EdDSA"])
def test_a_token_signed_by_a_key_of_the_issuer_is_accepted(opened, algorithm):
    key = SigningKey("k", algorithm)
    assert owner(opened(key), token(key, URL)) == Identity("oidc:alice", Role.READ)


def test_the_highest_role_of_the_values_is_given(opened):
    issuer = opened()
    assert owner(issuer, token(KEY, URL, roles=["staff", "ops", "other"])).role is Role.ADMIN
    assert owner(issuer, token(KEY, URL, roles="other apps")).role is Role.WRITE


@pytest.mark.parametrize("roles", [None, [], ["other"], "", 7, {"staff": True}, [["staff"]], [None]])
def test_a_subject_without_a_role_may_do_nothing(opened, roles):
    with pytest.raises(NoRoleError, match="oidc:alice has no role") as caught:
        owner(opened(), token(KEY, URL, roles=roles))
    assert caught.value.name == "oidc:alice"


def test_the_claim_of_roles_may_be_inside_another_one(opened):
    issuer = opened(role_claim="realm_access.roles")
    assert owner(issuer, token(KEY, URL, realm_access={"roles": ["ops"]})).role is Role.ADMIN
    with pytest.raises(NoRoleError):
        owner(issuer, token(KEY, URL, realm_access=["ops"]))


def test_the_claim_of_roles_may_be_a_url(opened):
    issuer = opened(role_claim="https://x.example/roles")
    assert owner(issuer, token(KEY, URL, **{"https://x.example/roles": ["apps"]})).role is Role.WRITE


def test_a_token_for_several_audiences_is_accepted(opened):
    assert owner(opened(), token(KEY, URL, aud=["other", AUDIENCE])).name == "oidc:alice"


NOW = int(time.time())
REFUSED_CLAIMS = [
    ({"exp": NOW - 3_600}, "has expired"),
    ({"exp": None}, "no claim `exp`"),
    ({"exp": "soon"}, "malformed"),
    ({"exp": float("inf")}, "malformed"),
    ({"exp": float("nan")}, "malformed"),
    ({"nbf": NOW + 3_600}, "not valid yet"),
    ({"iat": NOW + 3_600}, "not valid yet"),
    ({"aud": "other"}, "another audience"),
    ({"aud": ["other"]}, "another audience"),
    ({"aud": None}, "no claim `aud`"),
    ({"aud": {"penstock": 1}}, "another audience"),
    ({"iss": "https://evil.example"}, "another issuer"),
    ({"iss": URL + "/"}, "another issuer"),
    ({"iss": None}, "no claim `iss`"),
    ({"sub": None}, "no claim `sub`"),
    ({"sub": ""}, "printable"),
    ({"sub": "a\nb"}, "printable"),
    ({"sub": "a" * 256}, "printable"),
    ({"sub": 7}, "malformed"),
]


@pytest.mark.parametrize(("claims", "expected"), REFUSED_CLAIMS)
def test_a_token_with_other_claims_is_refused(opened, claims, expected):
    iss = claims.get("iss", URL)
    text = token(KEY, iss, **{name: value for name, value in claims.items() if name != "iss" or value is None})
    assert expected in reason(opened(), text)


def test_clocks_may_differ_by_the_leeway(opened):
    expired = token(KEY, URL, exp=int(time.time()) - 20)
    assert owner(opened(leeway_s=60), expired).name == "oidc:alice"
    assert "expired" in reason(opened(leeway_s=5), expired)


class TestSignatures:
    @pytest.mark.parametrize("name", ["none", "None", "NONE", "", None, 7, ["RS256"], {"a": 1}])
    def test_a_token_without_a_signature_is_refused(self, opened, name):
        issuer = opened()
        assert "algorithm is not accepted" in reason(issuer, unsigned({"alg": name, "kid": "k1"}))
        assert "algorithm is not accepted" in reason(issuer, unsigned({"kid": "k1"}))

    @pytest.mark.parametrize("form", ["pem", "der", "modulus"])
    def test_the_public_key_is_no_secret_of_hmac(self, opened, form):
        public = RSA.private.public_key()
        secret = {
            "pem": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "der": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
            "modulus": RSA.entry["n"].encode(),
        }[form]
        head = f"{part({'alg': 'HS256', 'kid': 'r1'})}.{part(claims_of(URL, roles=['ops']))}"
        made = f"{head}.{part(hmac.digest(secret, head.encode(), hashlib.sha256))}"
        assert "algorithm is not accepted" in reason(opened(), made)

    def test_a_key_verifies_no_algorithm_of_another_kind(self, opened):
        head = f"{part({'alg': 'ES256', 'kid': 'r1'})}.{part(claims_of(URL))}"
        assert "not valid" in reason(opened(), f"{head}.{part(bytes(64))}")
        assert "not valid" in reason(opened(), token(KEY, URL, headers={"kid": "r1"}))
        swapped = SigningKey("r1", "PS256")  # the entry allows RS256 only
        assert "not valid" in reason(opened(), token(swapped, URL))

    def test_the_signature_of_another_key_is_refused(self, opened):
        assert "signature" in reason(opened(), token(SigningKey("k1"), URL))

    def test_changed_claims_are_refused(self, opened):
        head, _, signature = token(KEY, URL).split(".")
        assert "signature" in reason(opened(), f"{head}.{part(claims_of(URL, roles=['ops']))}.{signature}")

    def test_zero_is_no_signature(self, opened):
        assert "signature" in reason(opened(), unsigned({"alg": "ES256", "kid": "k1"}, bytes(64)))

    def test_keys_that_the_token_brings_are_ignored(self, opened):
        own = SigningKey("own")
        headers = {"jwk": own.entry, "jku": "http://127.0.0.1:1/keys", "x5u": "http://127.0.0.1:1/x"}
        assert "not among the issuer's" in reason(opened(), token(own, URL, headers=headers))

    def test_critical_extensions_are_refused(self, opened):
        head = {"alg": "ES256", "kid": "k1", "crit": ["x"], "x": 1}
        assert "no JWT" in reason(opened(), unsigned(head))
        assert reason(opened(), unsigned({"alg": "ES256", "kid": "k1", "crit": ["b64"], "b64": False}))


GARBAGE = [
    "",
    "..",
    "a.b.c",
    "x" * 1_000,
    "\x00.\x00.\x00",
    "é.é.é",
    "\udcff.a.b",
    "ey.ey.ey",
    f"{part(b'[]')}.{part(b'{}')}.",
    f"{part(b'{')}.{part(b'{}')}.",
    f"{part(b'[' * 9_000)}.{part(b'{}')}.",
    f"{part({'alg': 'ES256', 'kid': 7})}.{part(b'{}')}.",
    f"{part({'alg': 'ES256', 'kid': ['k1']})}.{part(b'{}')}.",
    f"{part({'alg': 'ES256', 'kid': 'k1'})}.{part(b'nonsense')}.{part(bytes(64))}",
    f"{part({'alg': 'ES256', 'kid': 'k1'})}.{part(b'{}')}.***",
    f"{part({'alg': 'ES256', 'kid': 'k1'})}.{part(b'{}')}.{part(b'')}.{part(b'')}.{part(b'')}",  # as of JWE
]


@pytest.mark.parametrize("text", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_is_refused(opened, text):
    assert reason(opened(), text)


def test_garbage_with_a_signature_is_refused(opened):
    for payload in (b"nonsense", b"[]", b"[" * 5_000, b"1" * 5_000, b'{"exp":1e999}', b"\xff\xfe"):
        head = f"{part({'alg': 'ES256', 'kid': 'k1'})}.{part(payload)}"
        signature = get_algorithm_by_name("ES256").sign(head.encode(), KEY.private)
        assert reason(opened(), f"{head}.{part(signature)}")


def test_a_long_token_is_refused_before_it_is_read(opened):
    issuer = opened()
    text = token(KEY, URL, filling="x" * 16_000)
    assert len(text) > MAX_TOKEN_CHARS
    assert f"more than {MAX_TOKEN_CHARS} characters" in reason(issuer, text)
    assert owner(issuer, token(KEY, URL, filling="x" * 8_000)).name == "oidc:alice"


class TestKeySets:
    def test_only_keys_for_signatures_are_used(self):
        encryption = SigningKey("enc", "RS256").entry | {"use": "enc"}
        signing_only = SigningKey("s").entry | {"key_ops": ["sign"]}
        symmetric = {"kty": "oct", "k": "c2VjcmV0", "kid": "o", "alg": "HS256"}
        weak = SigningKey("weak", "RS256-1024").entry
        confused = SigningKey("c", "RS256").entry | {"alg": "HS256"}
        curve = SigningKey("e").entry | {"crv": "secp256k1"}
        bad = [
            7,
            None,
            [],
            {},
            {"kty": "RSA"},
            {"kty": ["RSA"]},
            {"kty": "RSA", "n": 1, "e": 2},
            KEY.entry | {"kid": 1},
        ]
        entries = [encryption, signing_only, symmetric, weak, confused, curve, *bad]
        with pytest.raises(IssuerError, match="no key that can be used"):
            parsed(json.dumps({"keys": entries}).encode(), "x")
        assert list(parsed(json.dumps({"keys": [*entries, KEY.entry]}).encode(), "x")) == ["k1"]

    def test_a_private_key_in_a_set_is_used_as_public(self):
        entry = get_algorithm_by_name("RS256").to_jwk(RSA.private, as_dict=True) | {"key_ops": ["sign", "verify"]}
        [key] = parsed(json.dumps({"keys": [entry]}).encode(), "x").values()
        assert not hasattr(key.public, "decrypt")
        assert key.algorithms == ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")

    @pytest.mark.parametrize(
        "content", [b"", b"[]", b"{}", b'{"keys":7}', b'{"keys":[]}', b"[" * 99_999, b"\xff", b" " * (1 << 21)]
    )
    def test_a_malformed_set_is_refused(self, content):
        with pytest.raises(IssuerError, match="here"):
            parsed(content, "here")

    def test_a_token_without_a_key_id_has_the_only_key(self, opened):
        only = SigningKey(None)
        assert owner(opened(only), token(only, URL)).name == "oidc:alice"
        assert "not among the issuer's" in reason(opened(KEY, RSA), token(only, URL))

    def test_a_changed_file_takes_effect(self, opened, tmp_path, monkeypatch):
        monkeypatch.setattr(KeyFile, "refresh_s", 0.05)
        issuer, later = opened(KEY), SigningKey("k2")
        assert owner(issuer, token(KEY, URL)), "the first fetch has ended"
        (tmp_path / "keys.json").write_bytes(b"{")
        time.sleep(0.2)
        assert owner(issuer, token(KEY, URL)).name == "oidc:alice"
        (tmp_path / "keys.json").write_bytes(key_set(later))
        deadline = time.monotonic() + 20
        while not asyncio.run(_accepts(issuer, token(later, URL))):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert reason(issuer, token(KEY, URL))


class TestSettings:
    @pytest.mark.parametrize(
        ("change", "expected"),
        [
            ({"audience": ""}, "audience is missing"),
            ({"roles": {}}, "no role"),
            ({"leeway_s": 301.0}, "leeway"),
            ({"leeway_s": -1.0}, "leeway"),
            ({"jwks": "/nowhere/keys.json"}, "/nowhere/keys.json"),
            ({"jwks": None, "url": "http://issuer.example"}, "must begin with https://"),
            ({"jwks": "http://10.0.0.1/keys"}, "must begin with https://"),
            ({"jwks": "file:///etc/passwd"}, "no URL"),
            ({"jwks": "ftp://127.0.0.1/keys"}, "must begin with https://"),
            ({"jwks": "https://user:secret@issuer.example/"}, "no URL"),
            ({"jwks": "https://[::1"}, "no URL"),
            ({"jwks": None, "ca": Path("/nowhere/ca.crt")}, "is no file"),
        ],
    )
    def test_wrong_settings_are_named(self, change, expected):
        given = {"url": URL, "audience": AUDIENCE, "roles": ROLES, "jwks": None} | change
        with pytest.raises(IssuerError) as caught:
            IssuerSettings(**given).check()
        assert expected in str(caught.value)

    def test_keys_are_fetched_securely(self):
        assert isinstance(IssuerSettings(URL, AUDIENCE, ROLES).source(), KeyUrl)
        for url in ("https://issuer.example", "http://127.0.0.1:8080/x", "http://localhost", "http://[::1]:80/"):
            check_url(url)

    def test_roles_are_pairs(self):
        assert roles_of(["ops=admin", "a=b=READ"]) == {"ops": Role.ADMIN, "a=b": Role.READ}
        for pair in ("ops", "=admin", "ops=root", "ops="):
            with pytest.raises(IssuerError, match="VALUE=ROLE"):
                roles_of([pair])


class TestDoors:
    @pytest.fixture
    def http(self, opened, tmp_path):
        static, line = new_token("robot", Role.WRITE)
        (tmp_path / "tokens").write_text(line)
        identities = identities_of(TokenFile(tmp_path / "tokens"), opened())
        assert isinstance(identities, TokenKinds)
        with Engine() as engine:
            client = TestClient(application(engine, identities=identities), base_url="http://localhost")
            client.static = static
            yield client

    @staticmethod
    def update(http, text: str):
        headers = {"authorization": f"Bearer {text}"}
        return http.post("/update", content="INSERT DATA { <urn:a> <urn:b> 1 }", headers=headers)

    def test_both_kinds_of_tokens_are_accepted_and_audited(self, http, caplog):
        caplog.set_level("INFO", "penstock.audit")
        writer = token(KEY, URL, roles=["apps"])
        sent = [http.static, writer, token(KEY, URL), token(KEY, URL, roles=[]), token(KEY, URL, exp=1), "a.b.c", "x"]
        assert [self.update(http, text).status_code for text in sent] == [204, 204, 403, 403, 401, 401, 401]
        assert [(r.getMessage(), r.user, r.status) for r in caplog.records if r.name == "penstock.audit"] == [
            ("change", "robot", 204),
            ("change", "oidc:alice", 204),
            ("refused change", "oidc:alice", 403),
            ("refused change", "oidc:alice", 403),
            ("refused change", "", 401),
            ("refused change", "", 401),
            ("refused change", "", 401),
        ]
        assert writer not in caplog.text

    def test_a_route_checks_the_role_that_its_body_asks_for(self, http):
        def post(roles):
            headers = {"authorization": f"Bearer {token(KEY, URL, roles=roles)}"}
            return http.post("/sparql", data={"update": "INSERT DATA { <urn:a> <urn:b> 1 }"}, headers=headers)

        assert post(["staff"]).json()["message"] == "oidc:alice has the role read, this needs write"
        assert post(["apps"]).status_code == 204

    def test_a_refusal_gives_the_reason(self, http):
        response = self.update(http, token(KEY, URL, exp=1))
        assert response.json() == {"error": "Unauthorized", "message": "the token has expired"}
        assert response.headers["www-authenticate"] == 'Bearer realm="penstock", error="invalid_token"'
        missing = http.get("/stats")
        assert missing.headers["www-authenticate"] == 'Bearer realm="penstock"'

    def test_a_browser_logs_in_with_a_token_that_a_cookie_can_contain(self, http):
        large = token(KEY, URL, filling="x" * 4_000)
        assert http.post("/login", content=large).status_code == 413
        assert http.post("/login", content=token(KEY, URL, exp=1)).status_code == 401
        assert http.post("/login", content=token(KEY, URL)).json() == {"name": "oidc:alice", "role": "read"}
        assert http.get("/stats").status_code == 200

    def test_a_header_of_any_bytes_is_refused(self, http):
        for text in (b"\xff.\xff.\xff", b"a." + bytes(range(128, 256)) + b".b", b"." * 3_000):
            assert http.get("/stats", headers={b"authorization": b"Bearer " + text}).status_code == 401


async def _accepts(issuer, text: str) -> bool:
    try:
        await issuer.owner(text)
    except (RefusedTokenError, UnavailableError):
        return False
    return True


def test_identities_are_none_without_tokens_and_issuer(opened, tmp_path):
    assert identities_of(None, None) is None
    issuer = opened()
    assert identities_of(None, issuer) is issuer
