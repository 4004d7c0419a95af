"""Registration by topic: records register and declare, records without a value stop and drop; refusals say why."""

from __future__ import annotations

import json

import pytest

from penstock.engine.limits import MAX_CATCH_UP
from penstock.errors import DataError, LimitError, QueryError
from penstock.log import FencedError, LogError, Record, RecordTooLargeError
from penstock.replication import status_topic as status
from penstock.services.coordinator.coordinator import Coordinator
from support.small_cluster import SmallCluster

IRI = "http://x/s"
COUNT = f"REGISTER QUERY q AS SELECT (COUNT(*) AS ?n) FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"
SUBJECTS = f"REGISTER QUERY q AS SELECT ?s FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}"


@pytest.fixture
def cluster():
    made = SmallCluster(engines=2)
    yield made
    made.close()


def statuses(cluster: SmallCluster) -> dict[str, dict]:
    """What a compacted view of the status topic has."""
    found: dict[str, dict] = {}
    for message in cluster.messages(cluster.topics.names.status):
        key = message.key.decode()
        found.pop(key, None)
        if message.value is not None:
            found[key] = json.loads(message.value)
    return found


def declared(cluster: SmallCluster) -> None:
    cluster.send(cluster.topics.names.queries, "q", COUNT)  # before its stream: that is read first all the same
    cluster.send(cluster.topics.names.streams, "s", json.dumps({"iri": IRI, "batch_ms": 500}))
    cluster.run()


def test_records_declare_and_register(cluster):
    declared(cluster)
    assert cluster.coordinator.streams[IRI].batch_ms == 500
    assert statuses(cluster) == {"query q 2": {"status": "standing", "query": "q", "number": 2, "point": None}}
    cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert [line["time"] for line in cluster.results()] == [101_000]
    assert statuses(cluster)["query q 2"]["point"] == 100_000
    assert cluster.coordinator.standing("q").point_ms == 100_000


def test_a_declaration_contains_the_mapping_of_messages(cluster):
    context = {"@vocab": "urn:", "id": "@id", "at": None}
    mapping = {"context": context, "time": {"path": "$.at", "unit": "ms"}, "events": "$[*]"}
    cluster.send(cluster.topics.names.queries, "q", COUNT)
    topic = cluster.topics.names.streams
    cluster.send(topic, "s", json.dumps({"iri": IRI, "batch_ms": 500, "mapping": mapping}))
    cluster.send(topic, "neither", json.dumps({"iri": "urn:neither", "mapping": mapping | {"context": 5}}))
    cluster.run()
    assert json.loads(cluster.coordinator.streams[IRI].mapping) == mapping
    assert "a context is an object" in statuses(cluster)["refused stream neither"]["message"]
    events = [{"id": "urn:a", "p": "b", "at": 100_200}, {"id": "urn:b", "p": "b", "at": 100_300}]
    cluster.push("s", 1, json.dumps(events))
    cluster.advance("s", 101_000)
    cluster.run()
    (line,) = cluster.results()
    assert line["time"] == 101_000
    assert '"value": "2"' in json.dumps(line)


def test_the_headers_of_a_registration(cluster):
    cluster.send(cluster.topics.names.streams, "s", json.dumps({"iri": IRI}))
    cluster.send(cluster.topics.names.queries, "own", COUNT.replace("q AS", "own AS"), max_catch_up="25")
    cluster.send(cluster.topics.names.queries, "other", COUNT.replace("q AS", "other AS"))
    cluster.send(cluster.topics.names.queries, "bad", COUNT.replace("q AS", "bad AS"), max_catch_up="many")
    cluster.send(cluster.topics.names.queries, "none", COUNT.replace("q AS", "none AS"), max_catch_up="0")
    cluster.send(cluster.topics.names.queries, "changes", COUNT.replace("q AS", "changes AS"), changes="true")
    cluster.send(cluster.topics.names.queries, "odd", COUNT.replace("q AS", "odd AS"), changes="yes")
    istream = COUNT.replace("QUERY q AS", "ISTREAM any AS")
    cluster.send(cluster.topics.names.queries, "any", istream, changes="true")
    cluster.run()
    assert {name: q.max_catch_up for name, q in cluster.coordinator.queries.items()} == {
        "own": 25,
        "other": MAX_CATCH_UP,
        "changes": MAX_CATCH_UP,
    }
    assert [name for name, q in cluster.coordinator.queries.items() if q.changes] == ["changes"]
    assert "no whole number: 'many'" in statuses(cluster)["refused query bad"]["message"]
    assert "between 1 and" in statuses(cluster)["refused query none"]["message"]
    assert "must be true or false" in statuses(cluster)["refused query odd"]["message"]
    assert "`changes` and ISTREAM exclude each other" in statuses(cluster)["refused query any"]["message"]
    replicas = [engine.replica for engine in cluster.engines.values()]
    assert [replica.least_catch_up for replica in replicas] == [25] * len(replicas)


def test_the_key_of_a_query_set_by_topic(cluster):
    cluster.send(cluster.topics.names.streams, "s", json.dumps({"iri": IRI}))
    near = f"REGISTER QUERY near (?user) AS SELECT ?o FROM STREAM <{IRI}> [RANGE 1s STEP 1s] WHERE {{ ?user ?p ?o }}"
    two = [("KEY", b"user"), ("key", b"place")]
    cluster.log.writer().append([Record(cluster.topics.names.queries, near.encode(), b"near", headers=tuple(two))])
    cluster.send(cluster.topics.names.queries, "q", COUNT, key="user")
    cluster.run()
    assert {name: q.key for name, q in cluster.coordinator.queries.items()} == {"near": ("user", "place")}
    assert "`key` is an option of query sets" in statuses(cluster)["refused query q"]["message"]


def test_another_setting_of_the_coordinator_leaves_standing_queries_as_they_are(cluster):
    declared(cluster)
    cluster.coordinator.close()
    cluster.coordinator = Coordinator(cluster.log, cluster.topics, "c2", cluster.terms, cluster.clock, max_catch_up=7)
    cluster.run(20)
    cluster.coordinator.register("q", COUNT)
    cluster.coordinator.register("r", COUNT.replace("q AS", "r AS"))
    assert {name: q.max_catch_up for name, q in cluster.coordinator.queries.items()} == {"q": MAX_CATCH_UP, "r": 7}


def test_many_declarations_are_applied_together_and_a_bad_one_is_refused_alone(cluster):
    topic = cluster.topics.names.streams
    assert cluster.coordinator._active is not None
    writer = cluster.coordinator._active.writer
    written = writer.written
    for i in range(100):
        cluster.send(topic, f"s{i}", json.dumps({"iri": f"http://x/{i}"}))
    cluster.coordinator.step()
    assert len(cluster.coordinator.streams) == 100
    assert writer.written - written <= 2, "one transaction, and perhaps one that confirms"
    cluster.send(topic, "a", json.dumps({"iri": "http://x/a"}))
    cluster.send(topic, "b", json.dumps({"iri": "http://x/a", "batch_ms": 7}))
    cluster.send(topic, "c", json.dumps({"iri": "http://x/c"}))
    cluster.run()
    assert {"http://x/a", "http://x/c"} < cluster.coordinator.streams.keys()
    assert "already declared" in statuses(cluster)["refused stream b"]["message"]
    cluster.send(topic, "b", json.dumps({"iri": "http://x/b"}))
    cluster.send(topic, "d", json.dumps({"iri": "http://x/d"}))
    cluster.run()
    assert "refused stream b" not in statuses(cluster)
    assert len(cluster.coordinator.streams) == 104


def test_records_without_a_value_stop_and_drop(cluster):
    declared(cluster)
    cluster.send(cluster.topics.names.streams, "s", None)
    cluster.run()
    assert "read by 1 queries" in statuses(cluster)["refused stream s"]["message"]
    cluster.send(cluster.topics.names.queries, "q", None)
    cluster.run()
    cluster.send(cluster.topics.names.streams, "s", None)
    cluster.send(cluster.topics.names.streams, "never there", None)
    cluster.run()
    assert (cluster.coordinator.streams, cluster.coordinator.queries) == ({}, {})
    assert statuses(cluster) == {}


def test_what_is_refused_changes_nothing_and_says_where_it_is_wrong(cluster):
    declared(cluster)
    cluster.send(cluster.topics.names.queries, "q", "REGISTER QUERY q AS SELECT *\nWHERE { ?s ?p }")
    cluster.send(cluster.topics.names.queries, None, COUNT)
    cluster.send(cluster.topics.names.streams, "t", '{"iri": "http://x/t", "speed": 1}')
    cluster.run()
    assert cluster.coordinator.queries["q"].text == COUNT
    reported = statuses(cluster)
    wrong = reported["refused query q"]
    assert (wrong["error"], wrong["line"]) == ("QueryError", 2)
    assert wrong["source"] == "penstock.queries/0/1"
    assert "has no key" in reported["refused query penstock.queries/0/2"]["message"]
    assert reported["refused stream t"]["message"].startswith("unknown settings speed")
    cluster.send(cluster.topics.names.queries, "q", COUNT)
    cluster.run()
    assert "refused query q" not in statuses(cluster)


@pytest.mark.parametrize(
    "wrong",
    [
        {"timing": 5},
        {"timing": ["http://x/\ud800"]},
        {"absorb_into": 5},
        {"iri": "http://x/\ud800"},
        {"slice_mb": 1 << 70},
        {"mapping": {}},
    ],
)
def test_settings_that_make_no_sense_are_refused(cluster, wrong):
    cluster.send(cluster.topics.names.streams, "s", json.dumps({"iri": IRI} | wrong))
    cluster.run()
    assert statuses(cluster)["refused stream s"]["error"] == "DataError"
    assert cluster.coordinator.streams == {}


def test_json_that_is_too_deep_is_refused(cluster):
    cluster.send(cluster.topics.names.streams, "s", "[" * 100_000)
    cluster.run()
    assert statuses(cluster)["refused stream s"]["error"] == "DataError"


@pytest.mark.parametrize(
    "topic",
    [
        *("", "a b", "..", "\xe9", "x" * 250),
        *("__consumer_offsets", "__transaction_state", "__anything"),
        *("penstock.shards", "penstock.tuples.s", "penstock.events.s", "penstock.dispatcher", "penstock.anything"),
    ],
)
def test_results_do_not_go_to_a_topic_that_cannot_be_or_is_a_services(cluster, topic):
    declared(cluster)
    there = cluster.log.topics()
    cluster.send(cluster.topics.names.queries, "r", SUBJECTS, topic=topic)
    cluster.run()
    assert statuses(cluster)["refused query r"]["error"] == "DataError"
    with pytest.raises(DataError):
        cluster.coordinator.register("r", SUBJECTS, topic=topic)
    assert cluster.log.topics() == there


@pytest.mark.parametrize("topic", ["penstock.results", "penstock.results.mine", "own", "penstocks"])
def test_results_go_to_topics_of_users_and_to_those_that_are_for_results(cluster, topic):
    declared(cluster)
    cluster.coordinator.register("r", SUBJECTS, topic=topic)
    assert topic in cluster.log.topics()


def test_a_topic_that_brokers_refuse_to_make_is_the_requests_fault(cluster, monkeypatch):
    """A policy, an access list, a name that collides with another one's metrics: the coordinator goes on."""
    declared(cluster)

    def refuse(_):
        raise LogError("Topic 'a.b' collides with existing topics: a_b")

    commands = cluster.coordinator._active.registrar.commands
    with monkeypatch.context() as broken:
        broken.setattr(cluster.log, "create", refuse)
        cluster.send(cluster.topics.names.queries, "r", SUBJECTS, topic="a.b")
        cluster.send(cluster.topics.names.streams, "t", '{"iri": "http://x/t"}')
        cluster.run()
        assert "collides" in statuses(cluster)["refused query r"]["message"]
        assert "collides" in statuses(cluster)["refused stream t"]["message"]
        with pytest.raises(DataError, match="collides"):
            cluster.coordinator.register("r", SUBJECTS, topic="a.b")
        cluster.run()
    assert list(cluster.coordinator.queries) == ["q"]
    assert cluster.coordinator._active.registrar.commands == commands
    cluster.coordinator.register("r", SUBJECTS, topic="a.b")
    cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert [message.key for message in cluster.messages("a.b")] == [b"r@101000"]


@pytest.mark.parametrize(
    ("key", "headers", "text"),
    [("n" * 2_000_000, {}, SUBJECTS), ("r", {"base": "urn:" + "b" * 2_000_000}, SUBJECTS), ("r", {}, " " * (2 << 20))],
)
def test_requests_of_any_size_are_refused_and_the_next_one_is_taken(cluster, key, headers, text):
    declared(cluster)
    cluster.send(cluster.topics.names.queries, key, text, **headers)
    cluster.send(cluster.topics.names.streams, key, "[" * 100 + " " * (2 << 20))
    cluster.send(cluster.topics.names.queries, "good", SUBJECTS)
    cluster.run()
    assert cluster.coordinator.queries.keys() == {"q", "good"}
    refused = {name: reported for name, reported in statuses(cluster).items() if name.startswith("refused")}
    assert [reported["error"] for reported in refused.values()] == ["LimitError", "LimitError"]
    assert all(len(name) < 100 and len(json.dumps(reported)) < 10_000 for name, reported in refused.items())


def test_a_request_whose_record_no_topic_takes_is_refused_and_changes_nothing(cluster):
    declared(cluster)
    cluster.log.configure(cluster.topics.names.control, 600)
    cluster.log.configure(cluster.topics.names.shards, 600)
    long = SUBJECTS + " " * 2_000
    commands = cluster.coordinator._active.registrar.commands
    cluster.send(cluster.topics.names.queries, "r", long)
    cluster.run()
    assert "max.message.bytes" in statuses(cluster)["refused query r"]["message"]
    with pytest.raises(LimitError, match=r"max\.message\.bytes"):
        cluster.coordinator.register("r", long)
    cluster.run()
    assert cluster.coordinator._active.registrar.commands == commands
    cluster.send(cluster.topics.names.queries, "r", SUBJECTS)
    cluster.run()
    assert cluster.coordinator.queries.keys() == {"q", "r"}
    cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert [line["query"] for line in cluster.results()] == ["q", "r"]


def test_positions_of_requests_do_not_depend_on_a_consumer_groups_offsets(cluster):
    """Brokers delete a group's offsets after seven idle days; a stopped query would stand again."""
    declared(cluster)
    cluster.send(cluster.topics.names.queries, "stopped", SUBJECTS)
    cluster.run()
    cluster.coordinator.stop("stopped")  # over HTTP: the topic has the registration still
    cluster.send(cluster.topics.names.queries, "again", SUBJECTS)
    cluster.run()
    cluster.coordinator.stop("again")
    cluster.coordinator.register("again", COUNT)
    queries, streams = cluster.coordinator.queries, cluster.coordinator.streams
    for group in list(cluster.log._groups):
        cluster.log.delete_group(group)
    cluster.log.compact(cluster.topics.names.control)
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert (cluster.coordinator.queries, cluster.coordinator.streams) == (queries, streams)
    cluster.send(cluster.topics.names.queries, "again", None)
    cluster.run()
    assert cluster.coordinator.queries.keys() == {"q"}


def test_named_graphs_are_records_of_their_own(cluster):
    """One record of all names would exceed the largest record some day, and no verb could be committed."""
    cluster.log.configure(cluster.topics.names.control, 2_000)
    for i in range(100):
        cluster.coordinator.update(f"INSERT DATA {{ GRAPH <http://x/graph/{i}> {{ <urn:a> <urn:p> <urn:b> }} }}")
    cluster.coordinator.update("INSERT DATA { GRAPH <http://x/%s> { <urn:a> <urn:p> <urn:b> } }" % ("g" * 1_500))
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert len(cluster.coordinator._active.registrar.graphs) == 101
    keys = [m.key for m in cluster.messages(cluster.topics.names.control) if m.key.startswith(b"graph:")]
    assert len(keys) == len(set(keys)) == 101


def test_a_refused_query_leaves_no_topic(cluster):
    cluster.send(cluster.topics.names.queries, "r", SUBJECTS, topic="own")
    cluster.run()
    assert "refused query r" in statuses(cluster)
    assert "own" not in cluster.log.topics()


def test_a_declaration_whose_topics_could_not_be_made_is_not_there(cluster, monkeypatch):
    def refuse(_):
        raise LogError("replication factor 3 larger than available brokers 1")

    with monkeypatch.context() as broken:
        broken.setattr(cluster.log, "create", refuse)
        with pytest.raises(DataError, match="replication factor"):
            cluster.coordinator.declare(IRI, "s")
    cluster.run()
    assert cluster.coordinator.streams == {}
    cluster.coordinator.declare(IRI, "s")
    cluster.coordinator.close()
    cluster.restart_coordinator()
    assert IRI in cluster.coordinator.streams
    assert cluster.topics.names.events("s") in cluster.log.topics()


def test_a_later_text_takes_the_place_of_the_earlier(cluster):
    declared(cluster)
    before = cluster.coordinator.queries["q"].number
    cluster.advance("s", 100_000)
    cluster.run()
    cluster.send(cluster.topics.names.queries, "q", SUBJECTS, topic="own")
    cluster.run()
    assert cluster.coordinator.queries["q"].number == before + 1
    cluster.push("s", 100_200, "<urn:a> <urn:p> <urn:b> .")
    cluster.advance("s", 101_000)
    cluster.run()
    [message] = cluster.messages("own")
    assert json.loads(message.value)["head"] == {"vars": ["s"]}


def test_each_record_is_applied_once_whichever_coordinator_leads(cluster):
    declared(cluster)
    cluster.send(cluster.topics.names.queries, "q", None)
    cluster.run()
    cluster.coordinator.register("q", COUNT)  # over HTTP, later: the records of before mean nothing any more
    number = cluster.coordinator.queries["q"].number
    cluster.coordinator.close()
    cluster.coordinator = Coordinator(cluster.log, cluster.topics, "c2", cluster.terms, cluster.clock)
    cluster.run()
    assert cluster.coordinator.queries["q"].number == number


def test_the_number_of_retained_refusals_is_bounded(cluster, monkeypatch):
    monkeypatch.setattr(status, "MAX_REFUSED", 3)
    for i in range(20):
        cluster.send(cluster.topics.names.queries, f"q{i}", "no query")
        cluster.run(2)
    assert len(statuses(cluster)) <= 5


def test_a_status_that_an_engine_writes_too_late_goes_again(cluster):
    declared(cluster)
    [late] = [m for m in cluster.messages(cluster.topics.names.status) if m.key == b"query q 2"]
    cluster.coordinator.stop("q")
    cluster.send(cluster.topics.names.status, "query q 2", late.value.decode())
    cluster.run()
    assert statuses(cluster) == {}


def test_a_deposed_coordinator_takes_nothing(cluster):
    declared(cluster)
    active = cluster.coordinator._active
    cluster.log.transactional(f"{cluster.topics.names.prefix}.coordinator")
    cluster.send(cluster.topics.names.queries, "r", COUNT)
    with pytest.raises(FencedError):
        cluster.coordinator._requests.step(active)


def many(count, begin=0):
    text = "SELECT ?s FROM STREAM <%s> [RANGE 1s STEP 1s] WHERE { ?s <urn:p> <urn:o%d> }"
    return {f"m{i}": f"REGISTER QUERY m{i} AS {text % (IRI, i)}" for i in range(begin, begin + count)}


def test_many_queries_are_registered_in_few_transactions(cluster):
    declared(cluster)
    active = cluster.coordinator._active
    written = active.writer.written
    bad, own = {"bad": "REGISTER QUERY bad AS SELECT nothing"}, {"own": COUNT.replace("q AS", "own AS")}
    for name, text in (many(40) | bad | many(40, 40) | own).items():
        headers = {"topic": "own.results"} if name == "own" else {}
        cluster.send(cluster.topics.names.queries, name, text, **headers)
    cluster.run()
    assert set(cluster.coordinator.queries) == {"q", "own", *many(80)}
    assert statuses(cluster)["refused query bad"]["status"] == "refused"
    assert active.writer.written - written < 12
    for i in range(80):
        cluster.push("s", 100_100 + i, f"<urn:a> <urn:p> <urn:o{i}> .")
    cluster.advance("s", 101_000)
    cluster.run()
    assert {line["query"] for line in cluster.results() if line["results"]["bindings"]} == {"q", *many(80)}


def test_a_query_that_no_topic_takes_is_refused_alone(cluster, monkeypatch):
    declared(cluster)
    active = cluster.coordinator._active
    commit, given = active.writer._writer.commit, many(6)

    def small(records):
        if any(record.value and b"<urn:o3>" in record.value and record.topic == SHARDS for record in records):
            raise RecordTooLargeError("too large", SHARDS)
        commit(records)

    SHARDS = cluster.topics.names.shards
    monkeypatch.setattr(active.writer._writer, "commit", small)
    for name, text in given.items():
        cluster.send(cluster.topics.names.queries, name, text)
    cluster.run()
    assert set(cluster.coordinator.queries) == {"q", *given} - {"m3"}
    assert statuses(cluster)["refused query m3"]["status"] == "refused"


def test_several_queries_of_one_request_are_registered_all_or_none(cluster):
    declared(cluster)
    active = cluster.coordinator._active
    written, commands = active.writer.written, active.registrar.commands
    requests = [(name, text, None, None, None, {}) for name, text in many(5).items()]
    for wrong, message in (
        (("bad", "REGISTER QUERY bad AS SELECT nothing", None, None, None, {}), "query 'bad': "),
        (("q", SUBJECTS, None, None, None, {}), "query 'q' must be registered on its own"),
        (("own", COUNT.replace("q AS", "own AS"), None, "own.results", None, {}), "query 'own' must be registered"),
    ):
        with pytest.raises((QueryError, DataError), match=message):
            cluster.coordinator.register_all([*requests, wrong])
        assert set(cluster.coordinator.queries) == {"q"}
        assert active.registrar.commands == commands
    made = cluster.coordinator.register_all([*requests, ("q", COUNT, None, None, None, {})])
    assert [record.name for record in made] == [*many(5), "q"]
    assert active.writer.written == written + 4  # three confirmations
    cluster.run()
    assert set(cluster.coordinator.queries) == {"q", *many(5)}
