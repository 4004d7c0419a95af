"""Registration of schemas: the answers of registries, and callers that never wait."""

from __future__ import annotations

import json

import httpx
import pytest

from penstock import DataError, LimitError, RegistryAccess, UnavailableError
from penstock.errors import NotYetError
from penstock.mapping.encodings.schema_registration import (
    MAX_KNOWN,
    MAX_PENDING,
    RegistryUnavailableError,
    SchemaRegistration,
)
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from support.avro_rows import RegistryInMemory, at_once

SCHEMA = '{"type": "string"}'


def client(tmp_path, *answers):
    """A client of a registry, and the requests that the registry gets."""
    requests: list[httpx.Request] = []
    left = list(answers)

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        status, body = left.pop(0)
        if isinstance(status, Exception):
            raise status
        return httpx.Response(status, content=body if isinstance(body, bytes) else json.dumps(body).encode())

    credentials = tmp_path / "credentials"
    credentials.write_text("user:secret\n")
    access = RegistryAccess("http://registry:8081/base", credentials)
    return SchemaRegistry(access, transport=httpx.MockTransport(answer)), requests


def test_a_schema_is_posted_under_its_subject_with_the_credentials_of_look_ups(tmp_path):
    registry, requests = client(tmp_path, (200, {"id": 12}))
    assert registry.register("a/b-value", SCHEMA) == 12
    (request,) = requests
    assert (request.method, request.url.raw_path) == ("POST", b"/base/subjects/a%2Fb-value/versions")
    assert json.loads(request.content) == {"schema": SCHEMA, "schemaType": "AVRO"}
    assert request.headers["content-type"] == "application/vnd.schemaregistry.v1+json"
    assert request.headers["authorization"].startswith("Basic ")


@pytest.mark.parametrize("status", [409, 422])
def test_a_refused_schema_is_a_fault_of_the_request(tmp_path, status):
    registry, _ = client(tmp_path, (status, {"error_code": status, "message": "incompatible: field x" + "x" * 10_000}))
    with pytest.raises(
        DataError, match="the schema registry at registry refuses the schema of subject s: inco"
    ) as error:
        registry.register("s", SCHEMA)
    assert len(str(error.value)) < 1_000


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (httpx.ConnectError("refused"), b""),
        (500, {"error_code": 50001}),
        (401, {"error_code": 401}),
        (404, {"error_code": 404}),
        (200, {}),
        (200, {"id": "1"}),
        (200, {"id": -1}),
        (200, {"id": 1 << 31}),
        (200, b"<html>"),
    ],
)
def test_any_other_answer_means_that_the_registry_is_unavailable(tmp_path, status, body):
    registry, _ = client(tmp_path, (status, body))
    with pytest.raises(UnavailableError, match="the schema registry at registry"):
        registry.register("s", SCHEMA)


# ---- without waiting
class Later:
    """Work that begins when `run` is called."""

    def __init__(self) -> None:
        self.works: list = []

    def __call__(self, work) -> None:
        self.works.append(work)

    def run(self) -> None:
        works, self.works = self.works, []
        for work in works:
            work()


def test_a_call_returns_at_once_and_the_registry_is_asked_once():
    later, registry = Later(), RegistryInMemory()
    schemas = SchemaRegistration(registry, later)
    for _ in range(3):
        with pytest.raises(NotYetError, match="the registry in memory has not answered yet"):
            schemas.id_of("s", SCHEMA)
    assert len(later.works) == 1
    later.run()
    number = schemas.id_of("s", SCHEMA)
    registry.error = UnavailableError("down")
    assert schemas.id_of("s", SCHEMA) == number
    assert later.works == []


@pytest.mark.parametrize(
    ("given", "raised"),
    [(UnavailableError("down"), RegistryUnavailableError), (DataError("down"), DataError), (OSError("down"), OSError)],
)
def test_after_an_error_the_registry_is_asked_again(given, raised):
    registry = RegistryInMemory()
    schemas = SchemaRegistration(registry, at_once)
    registry.error = given
    for _ in range(2):
        with pytest.raises(raised, match="down"):
            schemas.id_of("s", SCHEMA)
    registry.error = None
    assert schemas.id_of("s", SCHEMA) == 7


def test_without_a_registry_each_schema_is_refused():
    with pytest.raises(DataError, match="none is set \\(PENSTOCK_SCHEMA_REGISTRY\\)"):
        SchemaRegistration(None).id_of("s", SCHEMA)


def test_the_number_of_waiting_schemas_is_limited_and_abandoned_ones_do_not_count():
    later = Later()
    schemas = SchemaRegistration(RegistryInMemory(), later)
    for n in range(MAX_PENDING):
        with pytest.raises(NotYetError):
            schemas.id_of(f"s{n}", SCHEMA)
    with pytest.raises(LimitError, match=f"{MAX_PENDING} schemas wait for the registry in memory"):
        schemas.id_of("one more", SCHEMA)
    later.run()
    with pytest.raises(NotYetError):
        schemas.id_of("one more", SCHEMA)


def test_the_number_of_known_schemas_is_limited():
    registry = RegistryInMemory()
    schemas = SchemaRegistration(registry, at_once)
    for n in range(MAX_KNOWN + 1):
        schemas.id_of(f"s{n}", SCHEMA)
    registry.error = UnavailableError("down")
    schemas.id_of("s1", SCHEMA)
    with pytest.raises(RegistryUnavailableError):
        schemas.id_of("s0", SCHEMA)


def test_a_thread_asks_the_registry():
    schemas = SchemaRegistration(RegistryInMemory())
    for _ in range(1_000_000):
        try:
            assert schemas.id_of("s", SCHEMA) == 7
        except NotYetError:
            continue
        break
    else:
        pytest.fail("the thread has not answered")
    schemas.close()
