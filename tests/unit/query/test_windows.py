"""Registration and dataset clauses: every way to write a window, in every dialect of the own form."""

from __future__ import annotations

import pytest

from penstock import QueryError, parse
from penstock.query.algebra.tree import Filter, WindowGraph
from penstock.query.algebra.walk import nodes
from penstock.query.ir import ContinuousQuery, CountRange, RelationToStream, TimeRange, WindowClause
from penstock.query.translation.durations import MAX_DURATION_MS, duration_ms, instant_ms


def query(text: str, base: str | None = None) -> ContinuousQuery:
    statement = parse(text, base)
    assert isinstance(statement, ContinuousQuery)
    return statement


def extent(window: str, header: str = "") -> TimeRange | CountRange:
    return query(f"{header} SELECT * FROM STREAM <urn:s> {window} {{}}").windows[0].range


# ---- durations
@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("10s", 10_000),
        ("500ms", 500),
        ("0.5s", 500),
        ("1.5h", 5_400_000),
        ("2m", 120_000),
        ("1d", 86_400_000),
        ("1e3ms", 1_000),
        ("10S", 10_000),
        ("PT10S", 10_000),
        ("PT0.25S", 250),
        ("PT1M", 60_000),
        ("P1DT2H3M4S", 93_784_000),
        ("P2W", 1_209_600_000),
        ("pt1h", 3_600_000),
        ("1h30m", 5_400_000),
        ("10h", 36_000_000),
        ("1d12h0.5s", 129_600_500),
        ("1ns", 1),
        ("1000000ns", 1),
        ("1ms1ns", 2),
    ],
)
def test_durations_become_milliseconds(written: str, expected: int) -> None:
    assert duration_ms(written) == expected


@pytest.mark.parametrize(
    ("written", "complaint"),
    [
        ("0s", "greater than zero"),
        ("-1s", "greater than zero"),
        ("-PT1S", "greater than zero"),
        ("PT0S", "greater than zero"),
        ("0.5ms", "whole number"),
        ("PT0.0001S", "whole number"),
        ("1fortnight", "unknown unit 'fortnight'"),
        ("P1Y", "no fixed length"),
        ("P1M", "no fixed length"),
        ("P", "not an ISO 8601"),
        ("PT", "not an ISO 8601"),
        ("P1DT", "not an ISO 8601"),
        ("PT1X", "not an ISO 8601"),
        ("ten", "not a duration"),
        ("1h30", "not a duration"),
        ("--1s", "not a duration"),
        ("1s x", "not a duration"),
        ("1h 30parsecs", "not a duration"),
        ("999999999999d", "too long"),
        ("1e300d", "too long"),
        ("9" * 40 + "s", "as long as that"),
        ("", "not a duration"),
    ],
)
def test_what_is_no_duration_is_refused(written: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        duration_ms(written)


def test_the_longest_duration_is_a_bound() -> None:
    assert duration_ms(f"{MAX_DURATION_MS}ms") == MAX_DURATION_MS
    with pytest.raises(ValueError, match="too long"):
        duration_ms(f"{MAX_DURATION_MS + 1}ms")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("1970-01-01T00:00:00Z", 0),
        ("1970-01-01T00:00:00", 0),
        ("1970-01-01T00:00:01.5Z", 1_500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:59:59.999Z", -1),
        ("2014-08-01T00:00:00-02:30", 1_406_860_200_000),
    ],
)
def test_instants_become_milliseconds_since_the_epoch(written: str, expected: int) -> None:
    assert instant_ms(written) == expected


@pytest.mark.parametrize("written", ["2014-08-01", "2014-13-01T00:00:00Z", "1970-01-01T25:00:00Z", "soon", ""])
def test_what_is_no_instant_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="not an xsd:dateTime"):
        instant_ms(written)


# ---- windows
@pytest.mark.parametrize(
    ("window", "expected"),
    [
        ("[RANGE 10s STEP 1s]", TimeRange(10_000, 1_000)),
        ("[range 10 s slide 500 ms]", TimeRange(10_000, 500)),
        ("[RANGE 10s]", TimeRange(10_000, 10_000)),
        ("[RANGE 10s TUMBLING]", TimeRange(10_000, 10_000)),
        ("[RANGE PT10S STEP PT5S]", TimeRange(10_000, 5_000)),
        ('[RANGE "PT1M"^^<http://www.w3.org/2001/XMLSchema#duration>]', TimeRange(60_000, 60_000)),
        ("[RANGE 'PT1M'^^xsd:duration STEP \"10s\"]", TimeRange(60_000, 10_000)),
        ("[NOW]", TimeRange(0, 0, now=True)),
        ("[ALL STEP 1s]", TimeRange(None, 1_000)),
        ("[TRIPLES 10]", CountRange(10, 10)),
        ("[ELEMENTS 10 STEP 3]", CountRange(10, 3)),
        ("[RANGE TRIPLES 7 SLIDE 2]", CountRange(7, 2)),
        ("[ RANGE # white space\n 3000ms STEP 1s ]", TimeRange(3_000, 1_000)),
    ],
)
def test_windows(window: str, expected: object) -> None:
    assert extent(window) == expected


def test_computed_every_takes_the_place_of_every_step() -> None:
    text = (
        "REGISTER QUERY q COMPUTED EVERY 2s AS SELECT * FROM STREAM <urn:a> [RANGE 10s STEP 1s]"
        " FROM STREAM <urn:b> [ALL] FROM STREAM <urn:c> [NOW] {}"
    )
    computed = query(text)
    assert computed.computed_every_ms == 2_000
    assert [clause.range for clause in computed.windows] == [
        TimeRange(10_000, 2_000),
        TimeRange(None, 2_000),
        TimeRange(0, 0, now=True),
    ]


def test_a_step_beyond_the_range_is_a_warning() -> None:
    (warning,) = query("SELECT * FROM STREAM <urn:s> [RANGE 1s STEP 10s] {}").warnings
    assert "<urn:s>" in warning
    assert "never seen" in warning


def test_dataset_clauses_in_all_forms() -> None:
    read = query(
        """PREFIX : <http://ex.org/>
        SELECT * FROM STREAM :a [RANGE 1s] FROM NAMED STREAM :b [RANGE 1s] FROM :c [RANGE 1s] FROM NAMED :d [RANGE 1s]
        FROM NAMED WINDOW :w ON :a [RANGE 2s] FROM NAMED WINDOW :v ON :a [RANGE 3s]
        FROM :g FROM <urn:x-penstock:stored> FROM NAMED :h {}"""
    )
    ex = "http://ex.org/"

    def clause(name: str, stream: str, range_ms: int, *, default: bool, named: bool = False) -> WindowClause:
        return WindowClause(ex + name, ex + stream, TimeRange(range_ms, range_ms), default, named)

    assert read.windows == (
        clause("a", "a", 1_000, default=True),
        clause("b", "b", 1_000, default=False),
        clause("c", "c", 1_000, default=True),
        clause("d", "d", 1_000, default=False),
        clause("w", "a", 2_000, default=False, named=True),
        clause("v", "a", 3_000, default=False, named=True),
    )
    assert [iri.value for iri in read.dataset.default] == [ex + "g", "urn:x-penstock:stored"]
    assert [iri.value for iri in read.dataset.named] == [ex + "h"]
    assert read.continuous


def test_the_papers_query_reads_bare_names_against_the_base() -> None:
    paper = query(
        """REGISTER QUERY QC AS SELECT ?X ?Y ?Z
        FROM Tweet_Stream [RANGE 10s STEP 1s] FROM Like_Stream [RANGE 5s STEP 1s] FROM X-Lab
        WHERE { GRAPH Tweet_Stream { ?X po ?Z } GRAPH X-Lab { ?X fo ?Y } GRAPH Like_Stream { ?Y li ?Z } }""",
        base="http://x-lab/",
    )
    assert (paper.name, paper.name_is_iri, paper.publishes) == ("QC", False, False)
    assert [clause.name for clause in paper.windows] == ["http://x-lab/Tweet_Stream", "http://x-lab/Like_Stream"]
    assert [iri.value for iri in paper.dataset.default] == ["http://x-lab/X-Lab"]
    assert "http://x-lab/po" in repr(paper.algebra)


def test_window_words_stay_usable_in_plain_sparql() -> None:
    read = query(
        "PREFIX stream: <urn:s:> SELECT ?range ?step { ?now stream:range ?on ; <window> ?all . ?all stream: 1 }"
    )
    assert [variable.name for variable in read.variables] == ["range", "step"]
    assert not read.continuous


# ---- registration
def header(text: str, form: str = "SELECT *", base: str | None = None) -> ContinuousQuery:
    return query(f"PREFIX : <urn:q:> {text} AS {form} FROM STREAM <urn:s> [RANGE 1s] {{}}", base)


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        ("QUERY", RelationToStream.RSTREAM),
        ("STREAM", RelationToStream.RSTREAM),
        ("RSTREAM", RelationToStream.RSTREAM),
        ("ISTREAM", RelationToStream.ISTREAM),
        ("dstream", RelationToStream.DSTREAM),
    ],
)
def test_operators(operator: str, expected: RelationToStream) -> None:
    registered = header(f"REGISTER {operator} q.1-a")
    assert (registered.registered, registered.name, registered.r2s) == (True, "q.1-a", expected)


def test_a_text_without_register_is_one_shot_unless_it_has_windows() -> None:
    assert query("SELECT * {}").continuous is False
    windowed = query("SELECT * FROM STREAM <urn:s> [NOW] {}")
    assert (windowed.continuous, windowed.registered, windowed.name) == (True, False, None)


@pytest.mark.parametrize(
    ("operator", "name", "form", "published"),
    [
        ("STREAM", "<urn:out>", "CONSTRUCT {}", True),
        ("STREAM", ":out", "CONSTRUCT {}", True),
        ("STREAM", "out", "CONSTRUCT {}", True),
        ("ISTREAM", "<urn:out>", "CONSTRUCT {}", True),
        ("ISTREAM", "out", "CONSTRUCT {}", False),
        ("QUERY", "<urn:out>", "CONSTRUCT {}", False),
        ("RSTREAM", "<urn:out>", "SELECT *", False),
        ("STREAM", "<urn:out>", "SELECT *", False),
    ],
)
def test_which_queries_publish_a_stream(operator: str, name: str, form: str, published: bool) -> None:
    assert header(f"REGISTER {operator} {name}", form).publishes is published


def test_a_published_streams_bare_name_is_read_against_the_base() -> None:
    published = header("REGISTER STREAM out", "CONSTRUCT {}", base="http://x/")
    assert (published.name, published.name_is_iri) == ("http://x/out", True)


def test_all_header_clauses_together() -> None:
    registered = query(
        """PREFIX a: <urn:a:> REGISTER QUERY a:q COMPUTED EVERY PT5S REPORT NONEMPTY
        STARTING AT "2014-08-01T00:00:00Z"^^xsd:dateTime AS
        PREFIX b: <urn:b:> SELECT * FROM STREAM b:s [RANGE 10s] {}"""
    )
    assert (registered.name, registered.name_is_iri) == ("urn:a:q", True)
    assert registered.computed_every_ms == 5_000
    assert registered.report_nonempty
    assert registered.starting_at_ms == 1_406_851_200_000
    assert query("REGISTER QUERY q STARTING AT -5 AS SELECT * FROM STREAM <s> [NOW] {}").starting_at_ms == -5
    late = query("REGISTER QUERY q FROM BEGINNING AS SELECT * FROM STREAM <s> [NOW] {}")
    assert (late.from_beginning, late.starting_at_ms) == (True, None)
    assert not registered.from_beginning
    assert not query("REGISTER QUERY q REPORT EVERY AS SELECT * FROM STREAM <s> [NOW] {}").report_nonempty


# ---- functions of streams
def test_window_functions_name_a_window() -> None:
    read = query(
        """PREFIX fn: <urn:x-penstock:fn/> PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>
        SELECT (fn:windowStart(<urn:s>) AS ?a) (f:timestamp(?s, ?p, ?o) AS ?t)
        FROM STREAM <urn:s> [RANGE 1s] { ?s ?p ?o }"""
    )
    assert "name='window_start', args=(), extra='urn:s'" in repr(read.algebra)
    assert "name='timestamp', args=(Variable(name='s')" in repr(read.algebra)


@pytest.mark.parametrize(
    ("call", "complaint"),
    [
        ("fn:windowStart(<urn:other>)", "no window <urn:other>"),
        ("fn:windowStart(?w)", "takes the IRI of a window"),
        ("fn:windowStart()", "takes 1 argument, not 0"),
        ("fn:timestamp(?s, ?p)", "takes 3 arguments, not 2"),
        ("fn:nothing()", "there is no function <urn:x-penstock:fn/nothing>"),
    ],
)
def test_misused_window_functions(call: str, complaint: str) -> None:
    with pytest.raises(QueryError, match=complaint):
        parse(f"PREFIX fn: <urn:x-penstock:fn/> SELECT ({call} AS ?x) FROM STREAM <urn:s> [NOW] {{}}")


# ---- CQELS-QL
CQELS = """PREFIX lv: <http://deri.org/floorplan/>
SELECT ?a ?b FROM NAMED <urn:plan> WHERE {
  GRAPH <urn:plan> { ?x lv:connected ?y }
  STREAM <urn:rfid> [NOW] { ?a lv:detectedAt ?x FILTER(?a != ?b) }
  STREAM <urn:rfid> [RANGE 1h30m SLIDE 500ns] { ?b lv:detectedAt ?y }
  STREAM <urn:rfid> [NOW] { ?b lv:detectedAt ?x }
}"""


def test_cqels_windows_stand_at_their_patterns() -> None:
    read = query(CQELS)
    assert [(clause.name, clause.stream, clause.range, clause.named_window) for clause in read.windows] == [
        ("urn:rfid", "urn:rfid", TimeRange(0, 0, now=True), True),
        ("urn:x-penstock:window/1", "urn:rfid", TimeRange(5_400_000, 1), True),
    ]
    blocks = [node for node in nodes(read.algebra) if isinstance(node, WindowGraph)]
    assert sorted(block.name.value for block in blocks) == ["urn:rfid", "urn:rfid", "urn:x-penstock:window/1"]
    assert any(isinstance(block.inner, Filter) for block in blocks)  # CQELS dropped it
    assert read.continuous


def test_a_cqels_window_without_slide_is_warned_about() -> None:
    (warning,) = query("SELECT * { STREAM <urn:s> [RANGE 3s] { ?s ?p ?o } }").warnings
    assert "no SLIDE" in warning
    assert query("SELECT * { STREAM <urn:s> [RANGE 3s TUMBLING] { ?s ?p ?o } }").warnings == ()


@pytest.mark.parametrize(
    "body", ["STREAM <s> [ALL] {}", "STREAM <s> [NOW] {} STREAM <s> [TRIPLES 5] {}", "STREAM ?s [NOW] {}"]
)
def test_cqels_blocks_that_mean_nothing_here(body: str) -> None:
    with pytest.raises(QueryError):
        parse(f"SELECT * {{ {body} }}")


class TestRemoved:
    """REMOVED FROM: windows over what a stream has removed."""

    def test_the_forms(self):
        asked = query(
            "SELECT * REMOVED FROM STREAM <urn:a> [RANGE 2s STEP 1s] removed from named stream <urn:b> [NOW]"
            " REMOVED FROM NAMED WINDOW <urn:w> ON <urn:a> [ALL STEP 1s] FROM NAMED WINDOW <urn:v> ON <urn:a> [RANGE 1s]"
            " { WINDOW <urn:w> { ?s ?p ?o } }"
        )
        found = [(w.name, w.stream, w.removed, w.in_default, w.named_window) for w in asked.windows]
        assert found == [
            ("urn:a", "urn:a", True, True, False),
            ("urn:b", "urn:b", True, False, False),
            ("urn:w", "urn:a", True, False, True),
            ("urn:v", "urn:a", False, False, True),
        ]

    @pytest.mark.parametrize(
        ("clauses", "column", "message"),
        [
            ("REMOVED FROM STREAM <urn:a> [TRIPLES 3]", 38, "REMOVED FROM has time windows only"),
            ("REMOVED FROM <urn:a>", 23, "STREAM"),
            ("REMOVED STREAM <urn:a> [NOW]", 18, "FROM"),
            (
                "FROM STREAM <urn:a> [NOW] REMOVED FROM STREAM <urn:a> [NOW]",
                56,
                "use REMOVED FROM NAMED WINDOW <w> ON <urn:a>",
            ),
        ],
    )
    def test_errors_have_a_position(self, clauses, column, message):
        with pytest.raises(QueryError) as error:
            parse(f"SELECT * {clauses} {{ ?s ?p ?o }}")
        assert message in str(error.value)
        assert (error.value.line, error.value.column) == (1, column)
