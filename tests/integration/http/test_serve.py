"""An embedded engine over HTTP: routes, formats, errors, feeds."""

from __future__ import annotations

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

import penstock
from penstock.http.embedded import application
from penstock.http.live import Feed, Feeds, all_events, events
from penstock.http.sparql import preferred
from penstock.rdf.formats import Format
from support import hostile, large_queries

STREAM = "http://x/s"
PATH = "/streams/" + quote(STREAM, safe="")
QUERY = "REGISTER QUERY q AS SELECT ?o FROM STREAM <http://x/s> [RANGE 1s STEP 1s] WHERE { ?s <http://x/p> ?o }"


@pytest.fixture
def engine():
    with penstock.Engine() as made:
        yield made


@pytest.fixture
def http(engine):
    return TestClient(application(engine), base_url="http://localhost")


def declared(http):
    assert http.put(PATH, json={"batch_ms": 1000, "timing": "all"}).status_code == 200


def pushed(http, *events):
    for time, value in events:
        body = f"<http://x/a> <http://x/p> {json.dumps(value)} ."
        assert http.post(f"{PATH}/events?timestamp={time}", content=body).status_code == 202


def heard(feed, count, after=None):
    """The first `count` messages of a feed."""

    async def listen():
        found = []
        async for message in events(feed, after):
            found.append(message)
            if len(found) == count:
                return found
        return found

    return asyncio.run(asyncio.wait_for(listen(), 10))


def data_of(message):
    return json.loads(next(line[6:] for line in message.splitlines() if line.startswith(b"data: ")))


class TestSparql:
    @pytest.mark.parametrize(
        "accept", ["application/sparql-results+json", "text/csv", "application/sparql-results+xml"]
    )
    def test_a_large_answer_comes_in_parts(self, engine, http, accept):
        engine.load(
            "".join(f'<http://x/{i}> <http://x/p> "value {i}" .\n' for i in range(20_000)).encode(), format="nt"
        )
        text = "SELECT ?s ?o { ?s ?p ?o }"
        answer = http.get("/sparql", params={"query": text}, headers={"accept": accept})
        assert "content-length" not in answer.headers
        assert answer.headers["content-type"].startswith(accept)
        form = {"json": "to_json", "csv": "to_csv", "xml": "to_xml"}[accept[-4:].strip("/+")]
        assert answer.text == getattr(engine.query(text), form)()
        small = http.get("/sparql", params={"query": text + " LIMIT 3"}, headers={"accept": accept})
        assert int(small.headers["content-length"]) == len(small.content)

    def test_a_large_answer_that_xml_cannot_contain_is_an_error(self, engine, http):
        rows = [f'<http://x/{i:06}> <http://x/p> "value {i}" .\n' for i in range(9_000)]
        engine.load("".join([*rows, '<http://x/z> <http://x/p> "a \\u0001 character" .\n']).encode(), format="nt")
        params = {"query": "SELECT ?s ?o { ?s ?p ?o } ORDER BY ?s"}
        answer = http.get("/sparql", params=params, headers={"accept": "application/sparql-results+xml"})
        assert answer.status_code == 400
        assert "U+0001" in answer.text

    def test_every_way_of_asking(self, engine, http):
        engine.load(b"<http://x/a> <http://x/p> 1 .", format="turtle")
        text = "SELECT ?o { ?s ?p ?o }"
        answers = [
            http.get("/sparql", params={"query": text}),
            http.post("/sparql", data={"query": text}),
            http.post("/sparql", content=text, headers={"content-type": "application/sparql-query"}),
        ]
        for answer in answers:
            assert answer.headers["content-type"] == "application/sparql-results+json"
            assert answer.json()["results"]["bindings"][0]["o"]["value"] == "1"

    @pytest.mark.parametrize("form", [True, False])
    def test_updates(self, engine, http, form):
        text = "INSERT DATA { <http://x/a> <http://x/p> 1 }"
        if form:
            answer = http.post("/sparql", data={"update": text})
        else:
            answer = http.post("/sparql", content=text, headers={"content-type": "application/sparql-update"})
        assert answer.status_code == 204
        assert engine.query("ASK { <http://x/a> <http://x/p> 1 }") is True

    def test_what_is_no_operation_is_refused(self, http):
        assert http.get("/sparql").status_code == 400
        assert http.get("/sparql", params={"update": "INSERT DATA {}"}).status_code == 400
        assert http.post("/sparql", data={"query": "ASK {}", "update": "INSERT DATA {}"}).status_code == 400
        assert http.post("/sparql", content="ASK {}", headers={"content-type": "text/html"}).status_code == 400
        assert http.get("/sparql", params={"query": "ASK {}", "using-graph-uri": "http://x/g"}).status_code == 400
        direct = {"content-type": "application/sparql-update"}
        for path in ("/sparql", "/update"):
            for parameter in ("default-graph-uri=http://x/g", "update=INSERT", "using-graph-uri=relative"):
                answer = http.post(f"{path}?{parameter}", content="INSERT DATA {}", headers=direct)
                assert answer.status_code == 400, (path, parameter)

    def test_a_request_names_the_graphs_of_its_query(self, engine, http):
        for graph in ("http://x/g", "http://x/h"):
            engine.update(f"INSERT DATA {{ GRAPH <{graph}> {{ <{graph}> <http://x/p> 1 }} }}")
        text = "SELECT ?s FROM <http://x/elsewhere> { { ?s ?p ?o } UNION { GRAPH ?g { ?s ?p ?o } } } ORDER BY ?s"

        def subjects(**graphs):
            found = http.get("/sparql", params={"query": text} | graphs).json()["results"]["bindings"]
            return [row["s"]["value"] for row in found]

        assert subjects() == []
        assert subjects(**{"default-graph-uri": ["http://x/g", "http://x/h"]}) == ["http://x/g", "http://x/h"]
        assert subjects(**{"named-graph-uri": "http://x/h"}) == ["http://x/h"]
        assert subjects(**{"default-graph-uri": "http://x/none"}) == []
        assert subjects() == []

    @pytest.mark.parametrize("path", ["/sparql", "/update"])
    @pytest.mark.parametrize("form", [True, False])
    def test_a_request_names_the_graphs_of_its_update(self, engine, http, path, form):
        engine.update("INSERT DATA { GRAPH <http://x/g> { <http://x/a> <http://x/p> 1 } }")

        def sent(text):
            given = {"using-graph-uri": "http://x/g"}
            if form:
                return http.post(path, data={"update": text} | given)
            headers = {"content-type": "application/sparql-update"}
            return http.post(path, content=text, headers=headers, params=given)

        assert sent("INSERT { ?s <http://x/copied> ?o } WHERE { ?s <http://x/p> ?o }").status_code == 204
        assert engine.query("ASK { <http://x/a> <http://x/copied> 1 }") is True
        for own in ("WITH <http://x/g> INSERT { ?s ?p 2 } WHERE {", "INSERT { ?s ?p 2 } USING <http://x/h> WHERE {"):
            reply = sent(f"INSERT DATA {{}} ;\n {own} ?s ?p 1 }}")
            assert (reply.status_code, reply.json()["line"]) == (400, 2)
            assert "USING" in reply.json()["message"]

    def test_relative_iris_have_the_endpoint_as_base(self, engine, http):
        assert http.post("/update", content="INSERT DATA { <a> <p> 1 }").status_code == 204
        assert engine.query("ASK { <http://localhost/a> <http://localhost/p> 1 }") is True
        assert http.get("/sparql", params={"query": "ASK { <a> <p> 1 }"}).json()["boolean"] is True
        assert (
            http.get("/sparql", params={"query": "ASK { <a> <p> 1 }", "base": "http://x/"}).json()["boolean"] is False
        )

    def test_a_standing_query_is_refused_with_the_request_that_registers_it(self, http):
        text = "REGISTER QUERY q AS SELECT * FROM STREAM <http://x/s> [RANGE 1s] { ?s ?p ?o }"
        reply = http.get("/sparql", params={"query": text})
        assert (reply.status_code, reply.json()["error"]) == (400, "QueryError")
        assert "PUT /queries/NAME" in reply.json()["message"]
        assert "POST /update" in http.get("/sparql", params={"query": "INSERT DATA {}"}).json()["message"]
        assert "PUT /queries/NAME" in http.post("/update", content=text).json()["message"]

    def test_errors_have_a_place(self, http):
        reply = http.get("/sparql", params={"query": "SELECT ?x\nWHERE { ?x }"}).json()
        assert (reply["error"], reply["line"]) == ("QueryError", 2)

    @pytest.mark.parametrize(
        ("accept", "media"),
        [
            ("text/csv", "text/csv; charset=utf-8"),
            ("text/html, application/sparql-results+xml;q=0.9, */*;q=0.1", "application/sparql-results+xml"),
            ("image/png", "application/sparql-results+json"),
        ],
    )
    def test_formats_of_solutions(self, http, accept, media):
        answer = http.get("/sparql", params={"query": "SELECT * {}"}, headers={"accept": accept})
        assert answer.headers["content-type"] == media

    def test_formats_of_others(self, engine, http):
        engine.load(b"<http://x/a> <http://x/p> 1 .", format="turtle")
        ask = http.get("/sparql", params={"query": "ASK {}"}, headers={"accept": "application/sparql-results+xml"})
        assert "<boolean>true</boolean>" in ask.text
        text = "CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }"
        graph = http.get("/sparql", params={"query": text}, headers={"accept": "text/turtle"})
        assert graph.headers["content-type"].startswith("text/turtle")
        assert http.get("/sparql", params={"query": text}).headers["content-type"] == "application/n-triples"

    def test_what_a_client_wants_most(self):
        assert preferred("a/x;q=0.2, a/y", ["a/x", "a/y"]) == "a/y"
        assert preferred("a/*", ["b/x", "a/y"]) == "a/y"
        assert preferred("a/y;q=0, nonsense;q=what", ["b/x", "a/y"]) == "b/x"


class TestStreams:
    def test_a_stream_is_declared_listed_and_dropped(self, http):
        declared(http)
        declared(http)
        assert http.put(PATH, json={"batch_ms": 7}).status_code == 400
        assert http.get(PATH).json()["batch_ms"] == 1000
        assert list(http.get("/streams").json()) == [STREAM]
        assert http.delete(PATH).status_code == 204
        assert http.get(PATH).status_code == 404

    @pytest.mark.parametrize("body", ["[]", "{", '{"speed": 1}', '{"iri": "http://x/other"}', '{"batch_ms": "x"}'])
    def test_bad_settings(self, http, body):
        assert http.put(PATH, content=body).status_code == 400

    def test_events_one_by_one_and_many(self, engine, http):
        declared(http)
        pushed(http, (1, "a"))
        lines = "".join(
            json.dumps({"timestamp": t, "data": f'<http://x/a> <http://x/p> "{t}" .'}) + "\n" for t in (2, 3)
        )
        answer = http.post(f"{PATH}/events", content=lines, headers={"content-type": "application/x-ndjson"})
        assert answer.status_code == 202
        assert answer.json().items() >= {"events": 2, "accepted": 2, "late": 0, "rejected": 0}.items()
        turtle = '@prefix x: <http://x/> . x:a x:p "t" .'
        assert (
            http.post(f"{PATH}/events?timestamp=4", content=turtle, headers={"content-type": "text/turtle"}).status_code
            == 202
        )
        assert engine.stats()["streams"][STREAM]["events"] == 4

    def test_events_that_are_patches_remove(self, engine, http):
        http.put(PATH, json={"timing": ["http://x/t"]})
        triple = "<http://x/a> <http://x/p> <http://x/b> ."
        patch = {"content-type": "application/rdf-patch"}
        assert http.post(f"{PATH}/events?timestamp=1", content=f"A {triple}", headers=patch).status_code == 202
        http.post(f"{PATH}/advance?timestamp=100")
        assert engine.query("ASK { ?s ?p ?o }")
        lines = "".join(json.dumps({"timestamp": 101 + i, "data": f"{'DX'[i]} {triple}"}) + "\n" for i in range(2))
        answer = http.post(
            f"{PATH}/events?format=rdf-patch", content=lines, headers={"content-type": "application/x-ndjson"}
        )
        assert answer.json().items() >= {"accepted": 1, "rejected": 1}.items()
        http.post(f"{PATH}/advance?timestamp=200")
        assert not engine.query("ASK { ?s ?p ?o }")
        timing = http.post(f"{PATH}/events?timestamp=201", content="D <urn:a> <http://x/t> <urn:b> .", headers=patch)
        assert (timing.status_code, "timing predicate" in timing.json()["message"]) == (400, True)

    def test_an_events_line_may_hold_what_python_takes_for_the_end_of_one(self, engine, http):
        declared(http)
        line = json.dumps({"timestamp": 1, "data": '<http://x/a> <http://x/p> "a\u2028b" .'}, ensure_ascii=False)
        answer = http.post(f"{PATH}/events", content=line, headers={"content-type": "application/x-ndjson"})
        assert (answer.status_code, answer.json()["events"]) == (202, 1)

    def test_an_unknown_setting_is_named_without_pythons_words(self, http):
        reply = http.put(PATH, json={"speed": 1, "timing": "all"}).json()
        assert reply["message"].startswith("unknown settings speed: a stream has batch_ms, lateness_ms, timing, ")
        assert "Engine" not in reply["message"]
        wrong = [http.put(PATH, json=body).json() for body in ({"absorb_into": 5}, {"timing": 5}, {"slice_mb": "x"})]
        assert {answer["error"] for answer in wrong} == {"DataError"}

    def test_the_answer_counts_accepted_late_and_rejected_events(self, http):
        declared(http)
        http.post(f"{PATH}/advance?timestamp=5000")
        texts = [(1, '<http://x/a> <http://x/p> "1" .'), (6000, '<http://x/a> <http://x/p> "2" .'), (7000, "no triple")]
        lines = "".join(json.dumps({"timestamp": time, "data": data}) + "\n" for time, data in texts)
        answer = http.post(f"{PATH}/events", content=lines, headers={"content-type": "application/x-ndjson"})
        assert answer.json().items() >= {"events": 3, "accepted": 1, "late": 1, "rejected": 1}.items()
        one = http.post(f"{PATH}/events?timestamp=2", content=texts[0][1])
        assert one.json().items() >= {"events": 1, "accepted": 0, "late": 1, "rejected": 0}.items()
        assert "is it seconds?" in one.json()["warning"]

    def test_a_stream_with_a_mapping_takes_json(self, engine, http):
        mapping = {"context": {"@vocab": "http://x/", "id": "@id", "at": None}, "time": {"path": "$.at", "unit": "ms"}}
        assert http.put(PATH, json={"timing": "all", "mapping": mapping}).json()["mapping"] == mapping
        bad = http.put(PATH + "2", json={"timing": "all", "mapping": {"rml": "<a"}})
        assert (bad.status_code, "line 1" in bad.text) == (400, True)
        body = {"id": "http://x/s", "v": 1, "at": 5}
        report = {"messages": 1, "accepted": 1, "late": 0, "rejected": 0}
        assert http.post(f"{PATH}/events", json=body).json() == report
        assert http.post(f"{PATH}/events", content='{"id": "http://x/s", "v": 1, "at": 6}').json() == report
        lines = b"\n".join(
            json.dumps({"timestamp": 1, "data": json.dumps(body | {"at": 7})}).encode() for _ in range(2)
        )
        sent = http.post(f"{PATH}/events", content=lines, headers={"content-type": "application/x-ndjson"})
        assert sent.json() == report | {"messages": 2, "accepted": 2}
        triple, kind = "<http://x/s> <http://x/v> <http://x/o> .", {"content-type": "application/n-triples"}
        assert http.post(f"{PATH}/events?timestamp=9", content=triple, headers=kind).json()["events"] == 1
        assert http.post(f"{PATH}/events", content="a,b", headers={"content-type": "text/csv"}).status_code == 400
        assert http.post(f"{PATH}/events", json={"id": "http://x/s"}).status_code == 400
        assert engine.stats()["streams"][STREAM]["events"] == 5

    def test_a_declaration_without_timing_is_answered_with_a_warning(self, http):
        (warning,) = http.put(PATH, json={"batch_ms": 1000}).json()["warnings"]
        assert f"stream <{STREAM}> declares no timing: every tuple is stored for ever" in warning
        other = "/streams/" + quote("http://x/t", safe="")
        assert http.put(other, json={"timing": []}).json()["warnings"] == []
        assert "warnings" not in http.get(PATH).json()

    def test_stats_show_what_a_stream_has_stored(self, http):
        http.put(PATH, json={"batch_ms": 1000, "timing": ["http://x/q"]})
        pushed(http, (1, "a"), (2, "b"))
        http.post(f"{PATH}/events?timestamp=3", content="<http://x/a> <http://x/q> <http://x/b> .")
        http.post(f"{PATH}/advance?timestamp=1000")
        stats = http.get("/stats").json()["streams"][STREAM]
        assert (stats["tuples"], stats["stored_tuples"]) == (3, 2)
        assert stats["stored_bytes"] > 0
        assert f'penstock_stream_stored_tuples{{stream="{STREAM}"}} 2.0' in http.get("/metrics").text

    def test_bad_events(self, http):
        declared(http)
        lines = {"content-type": "application/x-ndjson"}
        assert http.post(f"{PATH}/events", content="{}", headers=lines).json()["message"].startswith("line 1")
        assert http.post(f"{PATH}/events", content=b"\n\xff\n", headers=lines).json()["message"].startswith("line 2")
        assert http.post(f"{PATH}/events?timestamp=1", content="no triple").status_code == 400
        assert http.post(f"{PATH}/events", content="").status_code == 400
        assert http.post("/streams/http%3A%2F%2Fx%2Fnone/events?timestamp=1", content="").status_code == 404
        letters = http.post("/dead-letters").json()
        assert base64.b64decode(letters[0]["data"]) == b"no triple"

    def test_late_events_are_reported_once(self, http):
        declared(http)
        http.post(f"{PATH}/advance?timestamp=5000")
        pushed(http, (1000, "late"))
        (late,) = http.post(f"{PATH}/late").json()
        assert (late["timestamp"], late["watermark"]) == (1000, 5000)
        assert http.post(f"{PATH}/late").json() == []


class TestQueries:
    def test_a_query_is_registered_listed_and_stopped(self, http):
        declared(http)
        first = http.put("/queries/q", content=QUERY)
        assert first.json()["name"] == "q"
        assert http.put("/queries/q", content=QUERY).json() == first.json()
        assert http.put("/queries/q", content=QUERY.replace("1s", "2s")).status_code == 400
        assert list(http.get("/queries").json()) == ["q"]
        assert http.get("/queries/q").json()["text"] == QUERY
        assert http.delete("/queries/q").status_code == 204
        assert http.get("/queries/q").status_code == 404
        assert http.get("/queries/q/results").status_code == 404

    def test_a_registration_with_changes_is_another_one(self, http):
        declared(http)
        first = http.put("/queries/q?changes=true", content=QUERY)
        assert first.json()["changes"] is True
        assert http.put("/queries/q?changes=true", content=QUERY).json() == first.json()
        assert http.put("/queries/q", content=QUERY).status_code == 400
        refused = http.put("/queries/i?changes=true", content=QUERY.replace("REGISTER QUERY q", "REGISTER ISTREAM i"))
        assert refused.status_code == 400
        assert "exclude each other" in refused.json()["message"]

    def test_a_query_is_replaced_from_the_next_instant_on(self, engine):
        feeds = Feeds.of(engine)
        with TestClient(application(engine, feeds=feeds), base_url="http://localhost") as http:
            declared(http)
            http.put("/queries/q?replace=true", content=QUERY)
            pushed(http, (500, "a"))
            http.post(f"{PATH}/advance?timestamp=1000")
            later = QUERY.replace("?o FROM", "?s ?o FROM").replace("STEP 1s", "STEP 500ms")
            assert http.put("/queries/q?replace=true", content=later).json()["text"] == later
            pushed(http, (1200, "b"))
            http.post(f"{PATH}/advance?timestamp=2000")
            found = [data_of(message) for message in heard(feeds.get("q"), 2)]
        assert [(each["time"], each["head"]["vars"]) for each in found] == [(1000, ["o"]), (1500, ["s", "o"])]
        assert len(found[1]["results"]["bindings"]) == 1

    def test_a_query_says_what_it_waits_for(self, http):
        declared(http)
        http.post(f"{PATH}/advance?timestamp=500")
        http.put("/queries/q", content=QUERY)
        status = http.get("/queries/q").json()["status"]
        assert (status["state"], status["next"]) == ("waiting", 1000)
        (wait,) = status["waits_for"]
        assert (wait["stream"], wait["watermark"], wait["required"]) == (STREAM, 500, 1000)
        assert wait["release"] == f"an event on <{STREAM}> later than 1000 ms, or advance to 1000 ms"
        assert http.get("/stats").json()["queries"]["q"]["waits_for"] == [wait]

    def test_a_bad_query_is_reported_with_its_position(self, http):
        reply = http.put("/queries/q", content="REGISTER QUERY q AS\nSELECT ?o WHERE { ?s }").json()
        assert (reply["error"], reply["line"]) == ("QueryError", 2)

    @pytest.mark.parametrize("name", large_queries.NAMES)
    def test_a_query_beyond_the_planning_limits_is_reported_with_its_position_and_others_continue(
        self, engine, http, name
    ):
        declared(http)
        text, limits = large_queries.large_query(name, STREAM)
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(http.put, "/queries/large", content=text)
            assert http.put("/queries/q", content=QUERY).status_code == 200
            pushed(http, (500, "x"))
            answer = asked.result(120)
        reply = answer.json()
        assert (answer.status_code, reply["error"], reply["line"]) == (400, "QueryLimitError", 2)
        assert int(reply["column"]) > 1
        assert any(limit in reply["message"] for limit in limits)
        assert len(answer.content) < 2_000
        assert list(http.get("/queries").json()) == ["q"]
        feed = Feed(engine.queries["q"])
        assert http.post(f"{PATH}/advance?timestamp=1000").status_code == 204
        assert data_of(heard(feed, 1)[0])["time"] == 1000

    @pytest.mark.parametrize("name", large_queries.NAMES)
    def test_a_one_shot_query_beyond_the_planning_limits_is_reported_with_its_position(self, http, name):
        text, limits = large_queries.large_query(name, STREAM)
        text = "\nSELECT * WHERE {" + text.partition("WHERE {")[2]
        reply = http.post("/sparql", data={"query": text})
        assert (reply.status_code, reply.json()["error"], reply.json()["line"]) == (400, "QueryLimitError", 2)
        assert any(limit in reply.json()["message"] for limit in limits)
        assert http.post("/sparql", data={"query": "ASK {}"}).status_code == 200

    def test_explain_and_stored_data(self, http):
        data = http.post(
            "/data?graph=http://x/g", content="<http://x/a> <http://x/p> 1 .", headers={"content-type": "text/turtle"}
        )
        assert data.json()["triples"] == 1
        assert http.post("/update", content="INSERT DATA { <http://x/b> <http://x/p> 2 }").status_code == 204
        assert "scan" in http.get("/explain", params={"query": "SELECT * { ?s ?p ?o }"}).text
        assert http.get("/explain").status_code == 400


class TestFeeds:
    def register(self, engine, *, changes=False):
        engine.declare_stream(STREAM, batch_ms=1000, timing="all")
        engine.advance(STREAM, 0)
        return engine.register(QUERY, changes=changes)

    def test_changes_begin_with_a_whole_answer_unless_the_listener_has_the_one_before(self, engine):
        feed = Feed(self.register(engine, changes=True))
        for second in range(3):
            engine.push(STREAM, f"<http://x/a> <http://x/p> {second} .", 1000 * second + 500, format="turtle")
        engine.advance(STREAM, 3000)

        def shape(message):
            data = data_of(message)
            parts = (data["added"], data["removed"], *([data] if "results" in data else []))
            return data["time"], *(len(part["results"]["bindings"]) for part in parts)

        assert [shape(m) for m in heard(feed, 3)] == [(1000, 1, 0, 1), (2000, 1, 1), (3000, 1, 1)]
        assert [shape(m) for m in heard(feed, 2, after=1000)] == [(2000, 1, 1), (3000, 1, 1)]
        assert [shape(m) for m in heard(feed, 2, after=1500)] == [(2000, 1, 1, 1), (3000, 1, 1)]

    @pytest.mark.parametrize(
        ("form", "name"), [("ASK", "boolean"), ("CONSTRUCT { <http://x/a> <http://x/q> ?o }", "graph")]
    )
    def test_changes_of_booleans_and_graphs_are_events_too(self, engine, form, name):
        self.register(engine)
        query = engine.register(QUERY.replace("QUERY q", "QUERY r").replace("SELECT ?o", form), changes=True)
        feed = Feed(query)
        engine.push(STREAM, "<http://x/a> <http://x/p> 1 .", 500, format="turtle")
        engine.advance(STREAM, 3000)
        first, second, third = (data_of(message) for message in heard(feed, 3))
        assert (name in first, name in second, name in third) == (True, False, False)
        assert first["added"][name] == first[name]
        assert (bool(first["added"][name]), bool(first["removed"][name])) == (True, False)
        assert third.keys() >= {"added", "removed"}
        gone = second if second["removed"][name] else third
        assert gone["removed"] == first["added"]

    def test_changes_after_lost_evaluations_have_a_whole_answer(self, engine):
        feed = Feed(self.register(engine, changes=True), max_evaluations=2)
        engine.advance(STREAM, 1000)

        async def listen():
            messages = events(feed)
            first = await anext(messages)
            await asyncio.to_thread(engine.advance, STREAM, 6000)
            return [first, *[await anext(messages) for _ in range(3)]]

        first, _, *rest = asyncio.run(listen())
        assert ["results" in data_of(message) for message in (first, *rest)] == [True, True, False]

    def test_a_listener_gets_retained_evaluations_then_new_ones(self, engine):
        feed = Feed(self.register(engine))
        engine.advance(STREAM, 3000)
        assert [data_of(m)["time"] for m in heard(feed, 3)] == [1000, 2000, 3000]
        assert [data_of(m)["time"] for m in heard(feed, 2, after=1000)] == [2000, 3000]

    def test_evaluations_before_the_feed_are_not_lost(self, engine):
        query = self.register(engine)
        engine.advance(STREAM, 2000)
        assert [data_of(m)["time"] for m in heard(Feed(query), 2)] == [1000, 2000]

    def test_a_listener_is_woken(self, engine):
        feed = Feed(self.register(engine))

        async def listen():
            messages = events(feed)
            waiting = asyncio.ensure_future(anext(messages))
            await asyncio.sleep(0.05)
            await asyncio.to_thread(engine.advance, STREAM, 1000)
            return await asyncio.wait_for(waiting, 10)

        assert data_of(asyncio.run(listen()))["time"] == 1000

    def test_a_slow_listener_learns_what_it_missed(self, engine):
        feed = Feed(self.register(engine), max_evaluations=2)
        engine.advance(STREAM, 1000)

        async def listen():
            messages = events(feed)
            first = await anext(messages)
            await asyncio.to_thread(engine.advance, STREAM, 6000)
            return [first, await anext(messages), await anext(messages), await anext(messages)]

        first, lost, *rest = asyncio.run(listen())
        assert data_of(first)["time"] == 1000
        assert lost == b"event: lost\ndata: 3\n\n"
        assert [data_of(m)["time"] for m in rest] == [5000, 6000]

    def test_retained_evaluations_are_bounded_by_rows_too(self, engine):
        feed = Feed(self.register(engine), max_rows=5)
        for second in range(4):
            data = "".join(f"<http://x/a> <http://x/p> {n} .\n" for n in range(2))
            engine.push(STREAM, data, timestamp=1000 * second + 500, format="turtle")
        engine.push(STREAM, "".join(f"<http://x/a> <http://x/p> {n} .\n" for n in range(9)), 4500, format="turtle")
        engine.advance(STREAM, 4000)
        assert [data_of(m)["time"] for m in heard(feed, 2)] == [3000, 4000]
        engine.advance(STREAM, 5000)
        assert len(data_of(heard(feed, 1)[0])["results"]["bindings"]) == 9

    def test_all_feeds_at_once_begin_with_the_last_answers(self, engine):
        query = self.register(engine)
        feeds = Feeds([query])
        engine.advance(STREAM, 2000)

        async def listen():
            messages = all_events(feeds)
            found = [await anext(messages)]
            feeds.add(engine.register(QUERY.replace("QUERY q", "QUERY r")))
            await asyncio.to_thread(engine.advance, STREAM, 3000)
            found += [await asyncio.wait_for(anext(messages), 10) for _ in range(2)]
            query.stop()
            feeds.end("q")
            await asyncio.to_thread(engine.advance, STREAM, 4000)
            return [*found, await asyncio.wait_for(anext(messages), 10)]

        found = [(data["query"], data["time"]) for data in map(data_of, asyncio.run(listen()))]
        assert found == [("q", 2000), ("q", 3000), ("r", 3000), ("r", 4000)]

    def test_the_end_is_reported(self, engine):
        query = self.register(engine)
        feed = Feed(query)
        engine.advance(STREAM, 1000)
        query.stop()
        feed.end()
        assert [m.startswith(b"event: end") for m in heard(feed, 2)] == [False, True]

    def test_a_server_that_stops_ends_the_streams_of_queries_that_go_on(self, engine):
        feeds = Feeds([self.register(engine)])
        engine.advance(STREAM, 1000)

        async def listen(messages):
            return [data_of(message)["time"] async for message in messages]

        async def both():
            listening = [asyncio.ensure_future(listen(m)) for m in (events(feeds.get("q")), all_events(feeds))]
            await asyncio.sleep(0.1)
            feeds.close()
            return await asyncio.wait_for(asyncio.gather(*listening), 10)

        assert asyncio.run(both()) == [[1000], [1000]], "without an end event"


class TestTheEngine:
    def test_page_stats_metrics_health(self, http):
        declared(http)
        http.post(f"{PATH}/advance?timestamp=0")
        http.put("/queries/q", content=QUERY)
        pushed(http, (500, "a"))
        http.post(f"{PATH}/advance?timestamp=1000")
        assert "<title>Penstock</title>" in http.get("/").text
        assert http.get("/stats").json()["evaluations"] == 1
        metrics = http.get("/metrics").text
        assert "penstock_evaluations_total 1.0" in metrics
        assert "penstock_state_bytes 0.0" in metrics
        assert f'penstock_stream_events_total{{stream="{STREAM}"}} 1.0' in metrics
        assert 'penstock_query_last{query="q"} 1000.0' in metrics
        assert http.get("/health/live").json()["alive"] is True


DEEP = b"[" * 200_000


class TestHostileBodies:
    @pytest.mark.parametrize(
        "body",
        [DEEP, b'{"a":' * 100_000, b'{"batch_ms": ' + b"9" * 10_000 + b"}", b"\xff", b"[]", b'"x"'],
        ids=range(6),
    )
    def test_settings_that_are_no_json_object_are_refused(self, http, body):
        answer = http.put(PATH, content=body)
        assert (answer.status_code, answer.json()["error"]) == (400, "DataError")

    @pytest.mark.parametrize(
        "line",
        [
            DEEP,
            b'{"timestamp": 1, "data": ' + DEEP,
            b'{"timestamp": 1, "data": 5}',
            b'{"timestamp": 1, "data": ["x"]}',
            b"[1, 2]",
            b"5",
            b'{"timestamp": 1}',
            b"\xff",
        ],
        ids=range(8),
    )
    def test_event_lines_that_are_no_events_are_refused_by_number(self, http, line):
        declared(http)
        good = b'{"timestamp": 1, "data": ""}\n'
        answer = http.post(f"{PATH}/events", content=good + line, headers={"content-type": "application/x-ndjson"})
        assert answer.status_code == 400
        assert answer.json()["message"].startswith("line 2: ")

    def test_plain_json_is_refused_and_moves_no_watermark(self, engine, http):
        declared(http)
        headers = {"content-type": "application/json"}
        answer = http.post(f"{PATH}/events?timestamp=5000", content=b'{"t": 21.5}', headers=headers)
        assert answer.status_code == 400
        assert "needs a context" in answer.json()["message"]
        assert engine.stats()["streams"][STREAM]["watermark"] is None
        [letter] = http.post("/dead-letters").json()
        assert base64.b64decode(letter["data"]) == b'{"t": 21.5}'

    @pytest.mark.parametrize("name", ["entities", "objects in objects", "triple terms", "bases on bases"])
    def test_a_hostile_document_or_event_is_refused_and_the_next_is_answered(self, http, name):
        declared(http)
        fmt, make = hostile.DOCUMENTS[name]
        headers, body = {"content-type": Format(fmt).media_type}, make(900_000).encode()
        for path in ("/data", f"{PATH}/events?timestamp=1000"):
            assert http.post(path, content=body, headers=headers).status_code == 400
            good = http.post(path, content="<u:s> <u:p> <u:o> .", headers={"content-type": "text/turtle"})
            assert good.status_code in {200, 202}
