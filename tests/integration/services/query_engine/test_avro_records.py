"""Result records in Avro: decoded by fastavro, they have the same answers as the records in JSON, for queries and query
sets, over limits, rejections, errors and kills.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

from penstock.client.results import Results
from penstock.engine.answers.record_lines import format_of, lines_of
from penstock.errors import DataError, UnavailableError
from penstock.mapping.encodings.schema_registration import RegistryUnavailableError, SchemaRegistration
from penstock.services.query_engine.result_sinks import RETRY_MS
from support.avro_rows import XSD, RegistryInMemory, at_once, plain, row_of
from support.small_cluster import SmallCluster

IRI = "http://x/s"
FIRST = 101
WINDOW = f"FROM STREAM <{IRI}> [RANGE 2s STEP 1s]"
BODIES = {
    "select": f"SELECT ?o ?z {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o OPTIONAL {{ ?o <urn:q> ?z }} }}",
    "ask": f"ASK {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "triples": f"CONSTRUCT {{ ?o <urn:of> <urn:s%d> }} {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "product": f"SELECT ?o ?z {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o . <urn:s%d> <urn:p> ?z }}",
    "typed": f"SELECT (COUNT(*) AS ?n) (STRLEN(STR(MAX(?o))) AS ?l) (xsd:double(AVG(?o)) AS ?d) (?l > 3 AS ?b) "
    f"(SUM(?o) AS ?s) {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "nonempty": f"REPORT NONEMPTY AS SELECT ?o {WINDOW} WHERE {{ <urn:s%d> <urn:p> ?o }}",
    "empty": f"SELECT * {WINDOW} WHERE {{ <urn:s%d> <urn:p> <urn:o1> }}",
}
TYPES = {"n": "long", "l": "long", "d": "double", "b": "boolean"}
TERMS = ["<urn:o1>", '"a \\"b\\" \\n \u2028"', '"chat"@fr', f'"4.25"^^<{XSD}decimal>', '"x"^^<urn:d>', "_:b"]
NUMBERS = [f'"{n}"^^<{XSD}integer>' for n in range(6)]


@pytest.fixture
def registry():
    return RegistryInMemory()


@pytest.fixture
def cluster(registry):
    made = SmallCluster(engines=2, schemas=SchemaRegistration(registry, at_once))
    made.coordinator.declare(IRI, "s", batch_ms=500)
    yield made
    made.close()


def text(name: str, body: str, subject: int) -> str:
    opening = f"PREFIX xsd: <{XSD}> REGISTER QUERY {name} " + ("" if body.startswith("REPORT") else "AS ")
    return opening + body.replace("%d", str(subject))


def begin(cluster: SmallCluster) -> None:
    cluster.advance("s", 100_000)
    cluster.run()


def push(cluster: SmallCluster, second: int, subjects: int = 3, terms: list[str] = TERMS) -> None:
    data = [
        f"<urn:s{i}> <urn:p> {terms[(second + i + k) % len(terms)]} ."
        for i in range(subjects)
        for k in range(4 * (i % 2))
    ]
    cluster.push("s", second * 1_000 - 800, "\n".join([*data, f'<urn:o1> <urn:q> "5"^^<{XSD}integer> .']))
    cluster.advance("s", second * 1_000)
    cluster.run()


def rows(cluster: SmallCluster, registry: RegistryInMemory, topic: str | None = None) -> dict[tuple, list[dict]]:
    """The rows of each evaluation, in order: no key is there twice."""
    found: dict[tuple, list[dict]] = {}
    keys = Counter()
    for message in cluster.messages(topic or cluster.topics.names.results):
        if format_of(message.headers) != "avro":
            continue
        row = row_of(message.value, registry.schema)
        who = row["_query"] + (f"/{row['_member']}" if "_member" in row else "")
        number = row.get("_row", 0)
        assert message.key == (f"{who}@{row['_time']}" + (f"/{number}" if number else "")).encode()
        keys[message.key] += 1
        found.setdefault((who, row["_time"]), []).append(row)
    assert set(keys.values()) <= {1}
    for parts in found.values():
        if "_rows" in parts[0]:
            assert [row["_row"] for row in parts] == list(range(max(parts[0]["_rows"], 1)))
    return found


def lines(cluster: SmallCluster, topic: str | None = None) -> dict[tuple, dict]:
    found = {}
    for message in cluster.messages(topic or cluster.topics.names.results):
        for line in lines_of(message.value, message.headers):
            who = line["query"] + (f"/{line['member']}" if "member" in line else "")
            assert (who, line["time"]) not in found
            found[who, line["time"]] = line
    return found


def assert_same(given: list[dict], line: dict) -> None:
    """Compare the rows of an evaluation with its line."""
    assert all(row["_snapshot"] == line["snapshot"] for row in given)
    if "error" in line:
        (row,) = given
        assert row["_error"]
        return
    assert all(row["_error"] is None for row in given)
    for name in ("boolean", "graph"):
        if name in line:
            (row,) = given
            assert row[name] == line[name]
            return
    variables, bindings = line["head"]["vars"], line["results"]["bindings"]
    assert {row["_rows"] for row in given} == {len(bindings)}
    if not bindings:
        assert all(given[0][name] is None for name in variables)
        return
    expected = [
        tuple(plain(row[v], TYPES.get(v, "string")) if v in row else None for v in variables) for row in bindings
    ]
    assert Counter(tuple(row[v] for v in variables) for row in given) == Counter(expected)


@pytest.mark.parametrize("body", BODIES)
def test_records_have_the_answers_of_records_in_json(cluster, registry, body):
    for i in range(6):
        cluster.coordinator.register(f"j{i}", text(f"j{i}", BODIES[body], i % 3))
        cluster.coordinator.register(f"a{i}", text(f"a{i}", BODIES[body], i % 3), result_format="avro", topic="own")
    begin(cluster)
    for second in range(FIRST, FIRST + 4):
        push(cluster, second, terms=NUMBERS if body == "typed" else TERMS)
    given, expected = rows(cluster, registry, "own"), lines(cluster)
    assert {(f"j{who[1:]}", time) for who, time in given} == expected.keys()
    for (who, time), parts in given.items():
        assert_same(parts, expected[f"j{who[1:]}", time])
    assert any(len(parts) > 1 or parts[0].get("_rows") == 0 for parts in given.values()) or body not in (
        "select",
        "product",
    )
    assert list(registry.subjects) == ["own-value"]
    assert len(registry.schemas) == 1
    assert not cluster.messages(cluster.topics.names.dead_letter)


def test_schemas_of_the_shared_topic_are_named_after_the_queries(cluster, registry):
    for name in ("q", "1 a/b"):
        cluster.coordinator.register(name, BODIES["select"].replace("%d", "1"), result_format="avro")
    assert list(registry.subjects) == [
        "penstock.results-penstock.results.q",
        "penstock.results-penstock.results._1_a_b",
    ]
    begin(cluster)
    push(cluster, FIRST)
    assert {who for who, _ in rows(cluster, registry)} == {"q", "1 a/b"}


def test_types_of_fields_are_those_that_the_text_determines(cluster, registry):
    cluster.coordinator.register("q", text("q", BODIES["typed"], 1), result_format="avro")
    (schema,) = map(json.loads, registry.schemas.values())
    types = {field["name"]: field["type"] for field in schema["fields"]}
    assert {name: types[name] for name in "nldbs"} == {
        "n": ["null", "long"],
        "l": ["null", "long"],
        "d": ["null", "double"],
        "b": ["null", "boolean"],
        "s": ["null", "string"],
    }
    assert all(field["default"] is None for field in schema["fields"] if field["name"] in types.keys() & set("nldbs"))


SET = f"REGISTER QUERY near (?s) AS SELECT ?o (COUNT(?z) AS ?n) {WINDOW} WHERE {{ ?s <urn:p> ?o . ?s <urn:p> ?z }} GROUP BY ?o"


@pytest.mark.parametrize("report", ["every", "nonempty", "change"])
def test_members_of_a_query_set_have_the_answers_of_records_in_json(cluster, registry, report):
    for name in ("near", "far"):
        made = SET.replace("near", name)
        given = {} if name == "far" else {"result_format": "avro", "topic": "own"}
        cluster.coordinator.register(name, made, report=report, **given)
        for i in range(4):
            value = json.dumps({"s": f"urn:s{i}"})
            cluster.send(cluster.topics.names.parameters(name), f"m{i}", value)
    cluster.run()
    begin(cluster)
    for second in range(FIRST, FIRST + 4):
        push(cluster, second, subjects=4)
    given, expected = rows(cluster, registry, "own"), lines(cluster)
    assert len(given) >= 6
    assert {("far" + who[4:], time) for who, time in given} == expected.keys()
    for (who, time), parts in given.items():
        assert parts[0]["_member"] == who.partition("/")[2]
        assert_same(parts, expected["far" + who[4:], time])


def test_an_answer_with_a_row_that_is_too_long_is_one_error(cluster, registry):
    for i in range(20):
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), result_format="avro", topic="own")
    begin(cluster)
    push(cluster, FIRST, subjects=20)
    cluster.log.configure("own", 1_000)
    for second in (FIRST + 1, FIRST + 2):
        cluster.push("s", second * 1_000 - 700, f"<urn:s4> <urn:p> <urn:{'i' * 2_000}> .\n<urn:s4> <urn:p> <urn:o> .")
        push(cluster, second, subjects=20)
    found = rows(cluster, registry, "own")
    assert len(found) == 3 * 20
    failed = {key: parts for key, parts in found.items() if parts[0]["_error"]}
    assert set(failed) == {("q4", 102_000), ("q4", 103_000)}
    assert all(len(parts) == 1 and "takes 1000 bytes" in parts[0]["_error"] for parts in failed.values())
    cluster.log.configure("own", 1 << 20)
    cluster.clock.advance(RETRY_MS)
    for second in range(FIRST + 3, FIRST + 6):
        push(cluster, second, subjects=20)
    found = rows(cluster, registry, "own")
    assert len(found) == 6 * 20
    assert found["q4", 106_000][0]["_error"] is None


def test_evaluations_of_a_topic_that_cannot_be_written_are_errors_in_the_results_topic(cluster):
    for i in range(9):
        cluster.coordinator.register(f"q{i}", text(f"q{i}", BODIES["select"], i), result_format="avro", topic="own")
    begin(cluster)
    cluster.log.deny("own")
    for second in (FIRST, FIRST + 1):
        push(cluster, second)
    found = lines(cluster)
    assert len(found) == 18
    assert all("cannot be written" in line["error"] for line in found.values())


def test_evaluations_survive_kills(cluster, registry):
    for i in range(6):
        cluster.coordinator.register(f"j{i}", text(f"j{i}", BODIES["select"], i))
        cluster.coordinator.register(f"a{i}", text(f"a{i}", BODIES["select"], i), result_format="avro", topic="own")
    begin(cluster)
    for step in range(6):
        push(cluster, FIRST + step, subjects=6)
        if step in (1, 3):
            for name in list(cluster.engines):
                cluster.kill(name)
            cluster.start_engine(f"e{step + 5}")
            cluster.run(200)
    given, expected = rows(cluster, registry, "own"), lines(cluster)
    assert len(given) == len(expected) == 36
    for (who, time), parts in given.items():
        assert_same(parts, expected[f"j{who[1:]}", time])


def test_a_client_says_that_it_cannot_read_the_records(cluster):
    results = Results(cluster.log)
    for name, kind in (("q", "avro"), ("p", "json")):
        cluster.coordinator.register(name, text(name, BODIES["select"], 1), result_format=kind)
        results.follow(cluster.topics.names.results, name)
    begin(cluster)
    push(cluster, FIRST)
    with pytest.raises(DataError, match="the result records of q are in Avro"):
        results.take("q", None, 0.0)
    assert len(results.take("p", None, 0.0)) == 1
    results.close()


# ---- registration
@pytest.mark.parametrize(
    ("body", "options", "reason"),
    [
        (BODIES["select"], {"changes": True}, "`changes` and result_format avro exclude each other"),
        (f"SELECT (?o AS ?_time) {WINDOW} WHERE {{ ?s ?p ?o }}", {}, r"\?_time cannot be the name of a field in Avro"),
        (f"SELECT ?é {WINDOW} WHERE {{ ?s ?p ?é }}", {}, "rename it, as in"),
    ],
)
def test_what_cannot_be_a_record_in_avro_is_refused(cluster, registry, body, options, reason):
    with pytest.raises(DataError, match=reason):
        cluster.coordinator.register("q", text("q", body, 1), result_format="avro", **options)
    assert cluster.coordinator.queries == {}
    assert registry.schemas == {}


def test_without_a_registry_a_registration_is_refused():
    cluster = SmallCluster()
    cluster.coordinator.declare(IRI, "s", batch_ms=500)
    with pytest.raises(DataError, match="result_format avro needs a schema registry, and none is set"):
        cluster.coordinator.register("q", text("q", BODIES["select"], 1), result_format="avro")
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1), result_format="avro")
    cluster.run()
    assert "needs a schema registry" in refusal(cluster)
    cluster.close()


def refusal(cluster: SmallCluster) -> str:
    found = [json.loads(message.value) for message in cluster.messages(cluster.topics.names.status) if message.value]
    return [status["message"] for status in found if "message" in status][-1]


def test_an_unavailable_registry_refuses_registrations_and_stops_nothing(cluster, registry):
    cluster.coordinator.register("qa", text("qa", BODIES["select"], 1), result_format="avro", topic="own")
    begin(cluster)
    registry.error = UnavailableError("the registry is unavailable: refused")
    with pytest.raises(RegistryUnavailableError, match="unavailable: refused"):
        cluster.coordinator.register("qb", text("qb", BODIES["ask"], 1), result_format="avro")
    cluster.send(cluster.topics.names.queries, "qc", text("qc", BODIES["ask"], 1), result_format="avro")
    cluster.send(cluster.topics.names.queries, "qd", text("qd", BODIES["ask"], 1))
    cluster.run()
    assert "unavailable: refused" in refusal(cluster)
    assert cluster.coordinator.active
    assert set(cluster.coordinator.queries) == {"qa", "qd"}
    push(cluster, FIRST)
    assert [row["_rows"] for row in rows(cluster, registry, "own")["qa", 101_000]] == [4] * 4
    registry.error = None
    cluster.coordinator.register("qb", text("qb", BODIES["ask"], 1), result_format="avro")
    assert set(cluster.coordinator.queries) == {"qa", "qb", "qd"}


def test_another_coordinator_and_a_repeated_registration_need_no_registry(cluster, registry):
    given = ("qa", text("qa", BODIES["select"], 1))
    before = cluster.coordinator.register(*given, result_format="avro")
    registry.error = UnavailableError("down")
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert cluster.coordinator.register(*given, result_format="avro") == before
    begin(cluster)
    push(cluster, FIRST)
    assert len(rows(cluster, registry)) == 1


def test_a_query_replaces_one_with_another_format_by_topic(cluster, registry):
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1))
    cluster.run()
    begin(cluster)
    push(cluster, FIRST)
    cluster.send(cluster.topics.names.queries, "q", text("q", BODIES["select"], 1), result_format="avro")
    cluster.run()
    push(cluster, FIRST + 1)
    formats = [format_of(message.headers) for message in cluster.messages(cluster.topics.names.results)]
    assert formats[0] == "json"
    assert set(formats[1:]) == {"avro"}
