"""The client of schema registries: failures, pauses, limits."""

from __future__ import annotations

import itertools
import json

import httpx
import pytest

from penstock import DataError, RegistryAccess, StorageError, UnavailableError
from penstock.mapping.encodings.schema_registry import SchemaRegistry
from penstock.mapping.mapping_limits import MappingLimits

OUTER = {"type": "record", "name": "o.Outer", "fields": [{"name": "inner", "type": "i.Inner"}]}
INNER = {"type": "record", "name": "i.Inner", "fields": [{"name": "v", "type": "int"}]}
ACCESS = RegistryAccess("http://registry:8081/base")


class Answers:
    """A registry: the answers by path, and the requests that it got."""

    def __init__(self, **answers):
        self.answers = {
            "/base/schemas/ids/1": (200, {"schema": json.dumps(INNER)}),
            "/base/schemas/ids/2": (200, {"schema": json.dumps(OUTER), "references": [INNER_REFERENCE]}),
            "/base/subjects/in%2Fner/versions/3": (200, {"schema": json.dumps(INNER)}),
            **answers,
        }
        self.requests: list[str] = []
        self.headers: list[httpx.Headers] = []
        self.now = 0.0

    def __call__(self, request):
        path = request.url.raw_path.decode()
        self.requests.append(path)
        self.headers.append(request.headers)
        status, body = self.answers.get(path, (404, {"error_code": 40403, "message": "Schema not found"}))
        if isinstance(status, Exception):
            raise status
        return httpx.Response(status, content=body if isinstance(body, bytes) else json.dumps(body).encode())

    def client(self, access=ACCESS, **limits):
        transport = httpx.MockTransport(self)
        return SchemaRegistry(access, MappingLimits(**limits), lambda: self.now, transport)


INNER_REFERENCE = {"name": "i.Inner", "subject": "in/ner", "version": 3}
DOWN = (httpx.ConnectError("refused"), None)


def decoded(schema, data):
    return schema.decode([data], 0, 128, 1 << 16, 256)


def test_a_schema_is_requested_once_and_its_references_are_resolved():
    answers = Answers()
    client = answers.client()
    for _ in range(3):
        assert decoded(client.schema(1), b"\x02") == [b'{"v":1}']
        assert decoded(client.schema(2), b"\x02") == [b'{"inner":{"v":1}}']
    assert answers.requests == [
        "/base/schemas/ids/1",
        "/base/schemas/ids/2",
        "/base/subjects/in%2Fner/versions/3",
    ]


def test_the_number_of_schemas_is_limited():
    answers = Answers()
    client = answers.client(max_schemas=1)
    for number in (1, 2, 1):
        client.schema(number)
    assert answers.requests.count("/base/schemas/ids/1") == 2


def test_an_unknown_schema_is_a_fault_of_the_message_and_not_requested_again_soon():
    answers = Answers()
    client = answers.client()
    for _ in range(3):
        with pytest.raises(DataError, match="schema id 9 of the schema registry at registry: the registry has no such"):
            client.schema(9)
    assert len(answers.requests) == 1
    answers.answers["/base/schemas/ids/9"] = answers.answers["/base/schemas/ids/1"]
    answers.now = 61.0
    client.schema(9)


@pytest.mark.parametrize(
    "answer",
    [
        DOWN,
        (httpx.ReadTimeout("slow"), None),
        (500, {"error_code": 50001}),
        (503, b"<html>"),
        (401, {"error_code": 401}),
        (404, b"<html>another server</html>"),
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (200, b"[]"),
        (302, b""),
        (429, {}),
    ],
)
def test_a_registry_without_a_usable_answer_is_unavailable_and_asked_again_after_growing_pauses(answer):
    answers = Answers(**{"/base/schemas/ids/1": answer})
    client = answers.client()
    asked = []
    for tick in range(3000):
        answers.now = tick / 50
        before = len(answers.requests)
        with pytest.raises(UnavailableError, match="the schema registry at registry"):
            client.schema(1)
        if len(answers.requests) > before:
            asked.append(answers.now)
    gaps = [after - at for at, after in itertools.pairwise(asked)]
    assert gaps == sorted(gaps)
    assert gaps[0] < 0.2
    assert 9.9 < gaps[-1] < 10.1
    answers.answers["/base/schemas/ids/1"] = 200, {"schema": json.dumps(INNER)}
    answers.now += 11
    client.schema(1)


def test_known_schemas_are_there_while_the_registry_is_unavailable():
    answers = Answers()
    client = answers.client()
    client.schema(1)
    answers.answers["/base/schemas/ids/2"] = DOWN
    with pytest.raises(UnavailableError):
        client.schema(2)
    client.schema(1)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ((200, {"schema": "{}", "schemaType": "JSON"}), "its type is 'JSON', not AVRO or PROTOBUF"),
        ((200, {}), "no schema"),
        ((200, {"schema": 7}), "no schema"),
        ((200, {"schema": "nonsense"}), "not JSON"),
        ((200, b'{"schema": "' + b"x" * (4 << 20)), "max_schema_bytes"),
        ((200, {"schema": '"int"', "references": 1}), "references"),
        ((200, {"schema": '"int"', "references": [{"subject": "s"}]}), "reference"),
        ((200, {"schema": '"int"', "references": [{"subject": "s", "version": 1}]}), "no such schema"),
    ],
)
def test_a_schema_that_cannot_be_used_is_a_fault_of_the_message(answer, reason):
    answers = Answers(**{"/base/schemas/ids/1": answer})
    with pytest.raises(DataError, match=reason):
        answers.client().schema(1)


def test_references_that_lead_to_themselves_or_to_too_many_schemas_end():
    loop = {"schema": json.dumps(INNER), "references": [{"subject": "s", "version": 1}]}
    answers = Answers(**{"/base/schemas/ids/1": (200, loop), "/base/subjects/s/versions/1": (200, loop)})
    answers.client().schema(1)
    many = {"schema": '"int"', "references": [{"subject": "s", "version": n} for n in range(200)]}
    found = {f"/base/subjects/s/versions/{n}": (200, {"schema": '"int"'}) for n in range(200)}
    answers = Answers(**{"/base/schemas/ids/1": (200, many)}, **found)
    with pytest.raises(DataError, match="more than 100 schemas"):
        answers.client().schema(1)


def test_credentials_come_from_a_file(tmp_path):
    file = tmp_path / "credentials"
    for text, header in (("user:pass:word\n", "Basic dXNlcjpwYXNzOndvcmQ="), ("token\n", "Bearer token")):
        file.write_text(text, encoding="utf-8")
        answers = Answers()
        answers.client(RegistryAccess(ACCESS.url, file)).schema(1)
        assert answers.headers[0]["authorization"] == header


@pytest.mark.parametrize(
    ("access", "error", "reason"),
    [
        (RegistryAccess("registry:8081"), DataError, "begins with http"),
        (RegistryAccess("http://"), DataError, "names a host"),
        (RegistryAccess("http://user:secret@registry"), DataError, "credentials belong into their own file"),
        (RegistryAccess("http://registry:port"), DataError, "invalid"),
    ],
)
def test_an_unusable_url_is_an_error(access, error, reason):
    with pytest.raises(error, match=reason) as caught:
        SchemaRegistry(access)
    assert "secret" not in str(caught.value)


def test_unusable_files_are_errors(tmp_path):
    for access in (RegistryAccess(ACCESS.url, tmp_path / "none"), RegistryAccess(ACCESS.url, ca=tmp_path / "none")):
        with pytest.raises(StorageError):
            SchemaRegistry(access)
    (tmp_path / "empty").write_text("\n", encoding="utf-8")
    with pytest.raises(StorageError, match="not one line"):
        SchemaRegistry(RegistryAccess(ACCESS.url, tmp_path / "empty"))
