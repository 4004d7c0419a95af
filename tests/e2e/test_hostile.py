"""Hostile input gives a right answer or a clear PenstockError: no other exception, no crash, no growth
without bound.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import textwrap
import time
from typing import Any

import pytest

import penstock

S = "urn:x:stream/s"
MEGABYTE = 1 << 20


@pytest.fixture
def engine() -> Any:
    with penstock.Engine() as made:
        made.declare_stream(S)
        yield made


def nt(subject: str, object_: str = "<urn:x:o>", predicate: str = "urn:x:p") -> str:
    return f"<urn:x:{subject}> <{predicate}> {object_} .\n"


def outcome(call: Any) -> Any:
    """Return what a call gives, or the PenstockError that it raises; every other error is a failure."""
    try:
        return call()
    except penstock.PenstockError as error:
        assert str(error)  # noqa: PT017 (any PenstockError is an outcome)
        return error


def sane(engine: Any) -> bool:
    """The engine still works."""
    engine.update("INSERT DATA { <urn:x:sane> <urn:x:is> <urn:x:here> }")
    return engine.query("ASK { <urn:x:sane> <urn:x:is> <urn:x:here> }") is True


# ---- times
@pytest.mark.parametrize("timestamp", [2**63 - 1, -(2**63), 2**63, -(2**63) - 1, 10**30, -(10**30), 2**62, -(2**62)])
def test_absurd_timestamps(engine: Any, timestamp: int) -> None:
    query = engine.register(f"SELECT * FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}")
    engine.push(S, nt("a"), timestamp=100)
    outcome(lambda: engine.push(S, nt("b"), timestamp=timestamp))
    outcome(lambda: engine.push_events(S, [(timestamp, nt("c"))]))
    engine.advance(S, 1000)
    assert [(e.time, len(e.answer)) for e in query.poll()] == [(1000, 1)]
    assert sane(engine)


@pytest.mark.parametrize("instant", [2**63 - 1, -(2**63), 2**63, 10**30])
def test_absurd_advances(engine: Any, instant: int) -> None:
    engine.register(f"SELECT * FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}")
    engine.push(S, nt("a"), timestamp=100)
    outcome(lambda: engine.advance(S, instant))
    assert sane(engine)


@pytest.mark.parametrize("timestamp", ["soon", None, float("nan"), float("inf"), 1.5, b"1", object()])
def test_timestamps_of_a_wrong_kind(engine: Any, timestamp: Any) -> None:
    with pytest.raises((penstock.PenstockError, TypeError, ValueError)):
        engine.push(S, nt("a"), timestamp=timestamp)
    assert sane(engine)


def test_a_far_advance_over_countless_empty_batches_is_quick() -> None:
    with penstock.Engine() as engine:
        engine.declare_stream(S, batch_ms=1)
        began = time.monotonic()
        engine.push(S, nt("a"), timestamp=1)
        engine.advance(S, 10**12)
        assert time.monotonic() - began < 5
        assert engine.query("ASK { <urn:x:a> ?p ?o }") is True


@pytest.mark.parametrize(
    "window",
    [
        "[RANGE 9223372036854775807ms STEP 1s]",
        "[RANGE 9223372036854775808ms STEP 1s]",
        "[RANGE 1s STEP 9223372036854775807ms]",
        "[RANGE 106751991168d STEP 1d]",
        "[TRIPLES 9223372036854775807 STEP 1]",
        "[TRIPLES 1 STEP 99999999999999999999]",
        "[RANGE 0.0000001s STEP 1s]",
    ],
)
def test_absurd_windows(engine: Any, window: str) -> None:
    made = outcome(lambda: engine.register(f"SELECT * FROM STREAM <{S}> {window} WHERE {{ ?s ?p ?o }}"))
    engine.push(S, nt("a"), timestamp=100)
    outcome(lambda: engine.advance(S, 2000))
    if not isinstance(made, penstock.PenstockError):
        assert all(len(e.answer) == 1 for e in made.poll())
    assert sane(engine)


# ---- sizes
@pytest.mark.parametrize("size", [MEGABYTE, 20 * MEGABYTE])
def test_long_literals(engine: Any, size: int) -> None:
    text = "x" * (size - 3) + "\u00e9\u20ac"
    loaded = outcome(lambda: engine.load(nt("big", f'"{text}"').encode(), format="nt"))
    if size == MEGABYTE:
        assert not isinstance(loaded, penstock.PenstockError)
    if not isinstance(loaded, penstock.PenstockError):
        (row,) = engine.query("SELECT ?o (STRLEN(?o) AS ?n) WHERE { <urn:x:big> ?p ?o }")
        assert str(row["o"]) == text
        assert int(row["n"]) == len(text)
    pushed = outcome(lambda: engine.push(S, nt("pushed", f'"{text}"'), timestamp=100))
    engine.advance(S, 100)
    if not isinstance(pushed, penstock.PenstockError):
        (row,) = engine.query("SELECT (STRLEN(?o) AS ?n) WHERE { <urn:x:pushed> ?p ?o }")
        assert int(row["n"]) == len(text)
    found = outcome(lambda: engine.query(f'ASK {{ ?s ?p "{text}" }}'))
    assert found is True or isinstance(found, penstock.PenstockError)


def test_long_iris_and_language_tags(engine: Any) -> None:
    iri = "urn:x:" + "y" * MEGABYTE
    outcome(lambda: engine.push(S, f"<{iri}> <urn:x:p> <{iri}> .", timestamp=10))
    outcome(lambda: engine.push(S, f'<urn:x:a> <urn:x:p> "t"@{"ab-" * 10000}cd .', timestamp=20))
    engine.advance(S, 100)
    assert sane(engine)


def test_a_hundred_thousand_values(engine: Any) -> None:
    engine.load("".join(nt(f"n{k}") for k in range(0, 2000, 2)).encode(), format="nt")
    values = " ".join(f"<urn:x:n{k}>" for k in range(100_000))
    found = engine.query(f"SELECT ?s WHERE {{ VALUES ?s {{ {values} }} ?s <urn:x:p> ?o }}")
    assert len(found) == 1000


def test_a_hundred_way_chain(engine: Any) -> None:
    engine.load("".join(nt(f"n{k}", f"<urn:x:n{k + 1}>") for k in range(150)).encode(), format="nt")
    chain = " . ".join(f"?v{k} <urn:x:p> ?v{k + 1}" for k in range(100))
    assert len(engine.query(f"SELECT * WHERE {{ {chain} }}")) == 51


def test_a_hundred_way_star(engine: Any) -> None:
    engine.load("".join(nt("hub", f'"{k}"', f"urn:x:p{k}") for k in range(100)).encode(), format="nt")
    star = " ; ".join(f"<urn:x:p{k}> ?v{k}" for k in range(100))
    assert len(engine.query(f"SELECT * WHERE {{ ?hub {star} }}")) == 1


def test_a_hundred_optionals_and_unions(engine: Any) -> None:
    engine.load("".join(nt(f"n{k}") for k in range(10)).encode(), format="nt")
    optionals = " ".join(f"OPTIONAL {{ ?s <urn:x:q{k}> ?v{k} }}" for k in range(100))
    assert len(engine.query(f"SELECT * WHERE {{ ?s <urn:x:p> ?o {optionals} }}")) == 10
    unions = " UNION ".join("{ ?s <urn:x:p> ?o }" for _ in range(100))
    assert len(engine.query(f"SELECT ?s WHERE {{ {unions} }}")) == 1000


def test_a_product_that_cannot_be_finished_is_a_limit(engine: Any) -> None:
    engine.load("".join(nt(f"n{k}") for k in range(50)).encode(), format="nt")
    product = " . ".join(f"?a{k} <urn:x:p> ?b{k}" for k in range(100))
    began = time.monotonic()
    with pytest.raises(penstock.LimitError):
        engine.query(f"SELECT * WHERE {{ {product} }}", timeout_s=2, memory_mb=256)
    assert time.monotonic() - began < 30
    assert sane(engine)


def test_a_sort_of_a_large_product_is_bounded_by_memory(engine: Any) -> None:
    engine.load("".join(nt(f"n{k}") for k in range(400)).encode(), format="nt")
    product = " . ".join(f"?a{k} <urn:x:p> ?b{k}" for k in range(4))
    with pytest.raises(penstock.LimitError):
        engine.query(f"SELECT * WHERE {{ {product} }} ORDER BY ?a0", timeout_s=60, memory_mb=64)
    assert sane(engine)


def test_a_standing_query_over_its_limit_errs_alone(engine: Any) -> None:
    """The other queries of the stream go on."""
    product = " . ".join(f"?a{k} <urn:x:p> ?b{k}" for k in range(12))
    guilty = engine.register(f"SELECT (COUNT(*) AS ?n) FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ {product} }}")
    innocent = engine.register(f"SELECT ?s FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s <urn:x:p> ?o }}")
    engine.push(S, "".join(nt(f"n{k}") for k in range(60)), timestamp=100)
    outcome(lambda: engine.advance(S, 1000))
    assert [len(e.answer) for e in innocent.poll()] == [60]
    for evaluation in guilty.poll():
        assert isinstance(outcome(lambda e=evaluation: e.answer), penstock.LimitError)


def test_a_path_over_a_large_cycle_is_right_or_a_limit(engine: Any) -> None:
    size = 3000
    engine.load("".join(nt(f"n{k}", f"<urn:x:n{(k + 1) % size}>") for k in range(size)).encode(), format="nt")
    assert len(engine.query("SELECT ?o WHERE { <urn:x:n0> <urn:x:p>+ ?o }")) == size
    pairs = outcome(
        lambda: engine.query("SELECT (COUNT(*) AS ?n) WHERE { ?s <urn:x:p>* ?o }", timeout_s=20, memory_mb=512)
    )
    if not isinstance(pairs, penstock.LimitError):
        assert int(next(iter(pairs))["n"]) == size * size
    assert sane(engine)


def test_strings_that_double_are_bounded(engine: Any) -> None:
    binds = " ".join(f"BIND(CONCAT(?v{k}, ?v{k}) AS ?v{k + 1})" for k in range(60))
    text = f'SELECT (STRLEN(?v60) AS ?n) WHERE {{ BIND("0123456789" AS ?v0) {binds} }}'
    found = outcome(lambda: engine.query(text, timeout_s=20, memory_mb=256))
    assert isinstance(found, penstock.LimitError) or "n" not in next(iter(found))
    assert sane(engine)


@pytest.mark.parametrize(
    "number", ["9" * 19, "9" * 40, "-" + "9" * 400, "1e400", "-1e400", "1e-400", "0.1" + "3" * 500]
)
def test_numbers_beyond_machine_words(engine: Any, number: str) -> None:
    text = f"SELECT ({number} + 1 AS ?a) ({number} * {number} AS ?b) (STR({number}) AS ?c) ({number} = {number} AS ?d) WHERE {{}}"
    found = outcome(lambda: list(engine.query(text)))
    if not isinstance(found, penstock.PenstockError):
        (row,) = found
        assert str(row["c"]) == number
        if "b" in row and number.lstrip("-").isdigit() and row["b"].datatype is not None:
            assert int(str(row["b"])) == int(number) ** 2
    assert sane(engine)


@pytest.mark.parametrize(
    "clause",
    [
        "LIMIT 99999999999999999999999",
        "OFFSET 99999999999999999999999",
        "LIMIT 9223372036854775807 OFFSET 9223372036854775807",
    ],
)
def test_absurd_slices(engine: Any, clause: str) -> None:
    engine.load(nt("a").encode(), format="nt")
    found = outcome(lambda: engine.query(f"SELECT * WHERE {{ ?s ?p ?o }} {clause}"))
    assert isinstance(found, penstock.PenstockError) or len(found) == ("OFFSET" not in clause)


def test_countless_labels(engine: Any) -> None:
    count = 50_000
    engine.load("".join(nt("hub", "<urn:x:o>", f"urn:x:label{k}") for k in range(count)).encode(), format="nt")
    assert len(engine.query("SELECT ?p WHERE { <urn:x:hub> ?p ?o }")) == count
    assert len(engine.query("SELECT ?s WHERE { ?s <urn:x:label777> ?o }")) == 1


def test_countless_graphs(engine: Any) -> None:
    data = "".join(f"<urn:x:a> <urn:x:p> <urn:x:o> <urn:x:g{k}> .\n" for k in range(20_000))
    engine.load(data.encode(), format="nquads")
    assert len(engine.query("SELECT ?g WHERE { GRAPH ?g { <urn:x:a> <urn:x:p> ?o } }")) == 20_000


def test_countless_streams(engine: Any) -> None:
    for k in range(500):
        engine.declare_stream(f"urn:x:stream/{k}")
    engine.advance(None, 1000)
    assert len(list(engine.streams)) == 501


def test_one_message_with_very_many_triples(engine: Any) -> None:
    query = engine.register(f"SELECT (COUNT(*) AS ?n) FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}")
    engine.push(S, "".join(nt(f"n{k}") for k in range(200_000)), timestamp=500)
    engine.advance(S, 1000)
    (evaluation,) = query.poll()
    assert int(next(iter(evaluation.answer))["n"]) == 200_000


# ---- nesting
def nested(depth: int) -> dict[str, str]:
    return {
        "braces": "SELECT * WHERE " + "{" * depth + " ?s ?p ?o " + "}" * depth,
        "parentheses": f"SELECT ({'(' * depth}1{')' * depth} AS ?x) WHERE {{}}",
        "minus signs": f"SELECT ({'-(' * depth}1{')' * depth} AS ?x) WHERE {{}}",
        "negations": f"ASK {{ FILTER({'!(' * depth}true{')' * depth}) }}",
        "optionals": "SELECT * WHERE { ?s ?p ?o " + "OPTIONAL { ?s ?p ?o " * depth + "}" * depth + "}",
        "sub-selects": "SELECT * WHERE { " + "{ SELECT * WHERE { " * depth + "?s ?p ?o" + " } }" * depth + " }",
        "exists": "ASK { " + "FILTER EXISTS { ?s ?p ?o " * depth + "}" * depth + " }",
        "path": f"ASK {{ ?s {'(' * depth}<urn:x:p>{')*' * depth} ?o }}",
        "blank nodes": "ASK { ?s ?p " + "[ <urn:x:p> " * depth + "1" + " ]" * depth + " }",
        "collections": "ASK { ?s ?p " + "( " * depth + "1" + " )" * depth + " }",
        "sums": f"SELECT ({'+'.join(['1'] * depth)} AS ?x) WHERE {{}}",
        "ors": f"ASK {{ FILTER({' || '.join(['false'] * depth)} || true) }}",
        "ifs": f"SELECT ({'IF(true, ' * depth}1{', 2)' * depth} AS ?x) WHERE {{}}",
    }


@pytest.mark.parametrize("depth", [10, 300, 3000])
@pytest.mark.parametrize("shape", list(nested(1)))
def test_deep_nesting(engine: Any, shape: str, depth: int) -> None:
    engine.load(nt("a").encode(), format="nt")
    text = nested(depth)[shape]
    found = outcome(lambda: engine.query(text, timeout_s=20))
    assert isinstance(found, penstock.PenstockError) or found is not None
    if depth == 10:
        assert not isinstance(found, penstock.PenstockError), found
    assert sane(engine)


# ---- garbage
GARBAGE = [
    b"",
    b"\x00",
    b"\xff\xfe\xfd",
    b"\xef\xbb\xbf<urn:a> <urn:b> <urn:c> .",
    b"<urn:a> <urn:b> .",
    b"<urn:a> <urn:b> <urn:c>",
    b'<urn:a> <urn:b> "open .',
    b'<urn:a> <urn:b> "\\ud800" .',
    b'<urn:a> <urn:b> "\\u12" .',
    b'<urn:a> <urn:b> "\xc3\x28" .',
    b"<urn:a b> <urn:b> <urn:c> .",
    b"<relative> <urn:b> <urn:c> .",
    b'"literal" <urn:b> <urn:c> .',
    b"<urn:a> _:b <urn:c> .",
    b"<urn:a> <urn:b> <urn:c> <urn:g> .",
    b'<urn:a> <urn:b> "x"^^"y" .',
    b'<urn:a> <urn:b> "x"@ .',
    b"@prefix : <urn:x> . :a :b :c .",
    b"<?xml version='1.0'?><rdf/>",
    b'{"@id": "urn:a"}',
    b"(" * 100_000,
    b"<" * 100_000,
    b"<urn:a> " * 100_000,
    b"# only a comment",
    b"\n\n\n",
]


@pytest.mark.parametrize("data", GARBAGE, ids=range(len(GARBAGE)))
def test_garbage_as_an_event(engine: Any, data: bytes) -> None:
    query = engine.register(f"SELECT * FROM STREAM <{S}> [RANGE 1s STEP 1s] WHERE {{ ?s ?p ?o }}")
    outcome(lambda: engine.push(S, data, timestamp=100))
    engine.push_events(S, [(200, data), (300, nt("good"))])
    engine.advance(S, 1000)
    (evaluation,) = query.poll()
    assert len(evaluation.answer) <= 2
    assert any(str(row["s"]) == "urn:x:good" for row in evaluation.answer)
    assert sane(engine)


@pytest.mark.parametrize("format_", ["nt", "nquads", "turtle", "trig", "xml", "json-ld"])
def test_random_bytes_in_every_format(engine: Any, format_: str) -> None:
    rng = random.Random(format_)
    for size in (1, 10, 1000, 50_000):
        data = rng.randbytes(size)
        outcome(lambda d=data: engine.load(d, format=format_))
        outcome(lambda d=data: engine.push(S, d, timestamp=100, format=format_))
    assert sane(engine)


def test_unknown_formats_and_files(engine: Any, tmp_path: Any) -> None:
    odd = tmp_path / "data.parquet"
    odd.write_bytes(b"PAR1")
    broken = tmp_path / "data.nt.gz"
    broken.write_bytes(b"\x1f\x8b broken")
    for call in (
        lambda: engine.load(nt("a").encode(), format="morse"),
        lambda: engine.load(nt("a").encode()),
        lambda: engine.load(odd),
        lambda: engine.load(broken),
        lambda: engine.push(S, nt("a"), timestamp=1, format="morse"),
        lambda: engine.load(nt("a").encode(), format="nt", graph="not an iri"),
    ):
        with pytest.raises((penstock.PenstockError, ValueError)):
            call()
    with pytest.raises((penstock.PenstockError, OSError)):
        engine.load(tmp_path / "missing.nt")
    assert sane(engine)


def test_a_failed_load_leaves_nothing_behind(engine: Any) -> None:
    data = "".join(nt(f"n{k}") for k in range(5000)) + "<urn:x:broken> oops .\n"
    with pytest.raises(penstock.DataError):
        engine.load(data.encode(), format="nt")
    assert engine.query("ASK { ?s ?p ?o }") is False


QUERIES = [
    "",
    " ",
    "\x00",
    "SELECT",
    "SELECT *",
    "\ud800",
    "SELECT * WHERE { ?s ?p ?o }" + "\x00",
    "}" * 1000,
    "?" * 1000,
    "#",
    "''",
    "PREFIX : <urn:> " * 1000,
    "SELECT * {" + "?s ?p ?o ." * 5000 + "}",
    "𝔘" * 100,
]


@pytest.mark.parametrize("text", QUERIES, ids=range(len(QUERIES)))
def test_odd_query_texts(engine: Any, text: str) -> None:
    outcome(lambda: engine.query(text, timeout_s=20))
    outcome(lambda: engine.register(text))
    outcome(lambda: engine.update(text))
    assert sane(engine)


def alone(code: str, seconds: int = 60) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, with a bound on its time."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, timeout=seconds, check=False, env=environment,
    )  # fmt: skip


def test_a_pattern_that_backtracks_for_ever_is_stopped_or_answered() -> None:
    done = alone(
        """
        import penstock
        with penstock.Engine() as engine:
            try:
                engine.query('ASK { FILTER(REGEX("' + 'a' * 40 + '\u00e9", "^(a+)+$")) }', timeout_s=2)
            except penstock.PenstockError as error:
                assert str(error)
        print("fine")
        """
    )
    assert done.stdout.strip() == "fine", done.stderr[-1000:]


def test_a_flood_of_bad_events_is_bounded() -> None:
    done = alone(
        """
        import penstock
        with penstock.Engine() as engine:
            engine.declare_stream("urn:s")
            bad = "x" * 10_000
            for k in range(300):
                try:
                    engine.push_events("urn:s", [(k, bad)] * 100)
                except penstock.LimitError:
                    engine.dead_letters()
            # Not ru_maxrss: a process that pytest starts inherits pytest's own.
            peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
            assert int(peak.split()[1]) < 400 << 10, peak
        print("fine")
        """,
        seconds=120,
    )
    assert done.stdout.strip() == "fine", done.stderr[-1000:]
