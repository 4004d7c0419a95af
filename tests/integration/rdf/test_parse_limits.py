"""No document makes its reader run out of memory, time or stack: it is read, or it is a DataError (ADR 52)."""

from __future__ import annotations

import gzip
import os
import signal
import subprocess
import sys
import textwrap
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.core._native import Dictionary
from penstock.errors import DataError
from penstock.rdf import parser_process, parsing
from penstock.rdf.bulk_files import Source, read
from penstock.rdf.checks import JsonDepth
from penstock.rdf.parse_limits import PARSE_LIMITS
from penstock.rdf.parser_process import POOL, ParserProcess
from penstock.rdf.parsing import parse
from support.hostile import DOCUMENTS, RDF, TOKENS, bomb

EVERYWHERE = replace(PARSE_LIMITS, small_document_bytes=0)  # nothing is parsed in this process
GOOD = {
    "turtle": '@prefix e: <http://e/> . e:s e:p "v", 01 ; e:q [ e:r ( 1 2 ) ] .',
    "trig": "<http://e/g> { <http://e/s> <http://e/p> 1 }",
    "xml": f'<rdf:RDF {RDF}><rdf:Description rdf:about="http://e/s"><e:p>v</e:p></rdf:Description></rdf:RDF>',
    "json-ld": '{"@id": "http://e/s", "http://e/p": ["v", {"@id": "http://e/o"}]}',
}


def memory_kb(field: str) -> int:
    with Path("/proc/self/status").open() as status:
        return int(next(line for line in status if line.startswith(field)).split()[1])


def outcome(data: str | bytes, name: str, **more: object) -> int | str:
    """The number of triples, or the reason."""
    try:
        return len(parse(Dictionary(), data, name, **more))
    except DataError as error:
        assert str(error)  # noqa: PT017
        return str(error)


@pytest.mark.parametrize("size", [8_000, 60_000, 400_000])
@pytest.mark.parametrize("name", DOCUMENTS)
def test_hostile_documents_are_read_or_refused_within_bounds(name, size):
    fmt, make = DOCUMENTS[name]
    text = make(size)
    before = memory_kb("VmRSS")
    found = outcome(text, fmt)
    assert memory_kb("VmRSS") - before < 700 << 10
    assert isinstance(found, (int, str))
    assert outcome(GOOD[fmt], fmt) > 0


@pytest.mark.parametrize("size", [100_000, 2 << 20])
@pytest.mark.parametrize("name", TOKENS)
def test_long_tokens_are_read_or_refused(name, size):
    fmt, make = TOKENS[name]
    assert isinstance(outcome(make(size), fmt), (int, str))


def test_a_token_beyond_sixteen_mib_is_a_data_error():
    text = f'<http://e/s> <http://e/p> "{"x" * (17 << 20)}" .'
    assert "token of the document is too long" in outcome(text, "turtle")
    assert "token of the document is too long" in outcome(f'{{"http://e/p": "{"x" * (17 << 20)}"}}', "json-ld")


# ---- XML
@pytest.mark.parametrize("declaration", ["<!DOCTYPE r>", "<!doctype r []>", '<!ENTITY x "y">'])
@pytest.mark.parametrize("padding", [0, 20_000, (1 << 20) - 5])
def test_declarations_in_rdf_xml_are_refused_wherever_they_stand(declaration, padding):
    text = GOOD["xml"].replace("><", ">" + " " * padding + declaration + "<", 1)
    assert "<!DOCTYPE> or <!ENTITY>" in outcome(text, "xml")


def test_a_local_owl_file_may_declare_entities_and_a_bomb_in_one_is_bounded(tmp_path):
    owl, hostile = tmp_path / "a.owl", tmp_path / "b.owl"
    owl.write_text(
        '<!DOCTYPE rdf:RDF [<!ENTITY e "http://e/">]>' + GOOD["xml"].replace('about="http://e/s', 'about="&e;s')
    )
    dictionary = Dictionary()
    [part] = read(dictionary, Source.of(owl))
    assert part.subjects.tolist() == [dictionary.find(1, "http://e/s")]
    hostile.write_text(bomb())
    with pytest.raises(DataError, match=r"b\.owl: (parsing|the document)"):
        list(read(Dictionary(), Source.of(hostile)))


# ---- JSON
@pytest.mark.parametrize("cut", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "depth"),
    [
        ("[" * 9 + "]" * 9, 9),
        ('{"a{[": "[[[[[[[[[[\\"[[[[["}', 1),
        ('["\\\\", [["\\\\\\"[["]]]', 3),
        ("[[],[],[[]]]" * 5, 3),
        ('"\\\\\\\\" [[[["["]]]]', 4),
    ],
)
def test_json_depth_counts_brackets_outside_of_strings(text, depth, cut):
    def feed(limit: int) -> None:
        counter = JsonDepth(limit)
        counter._brackets = limit  # count from the first bracket on
        for first in range(0, len(text), cut):
            counter.feed(text[first : first + cut].encode())

    feed(depth)
    with pytest.raises(DataError, match=f"deeper than {depth - 1} .max_json_depth"):
        feed(depth - 1)


@pytest.mark.parametrize(
    "text",
    [
        '{"temperature": 21.5}',
        "[1, 2, 3]",
        '"text"',
        "1",
        '{"@context": {"t": "http://e/t"}, "temperature": 1}',
        '{"@id": "http://e/s"}',
        '{"rows": [' + ",".join(['{"a": 1}'] * 200_000) + "]}",
    ],
    ids=range(7),
)
def test_json_with_content_but_without_a_triple_is_an_error_with_a_hint(text):
    assert "a JSON document needs a context" in outcome(text, "json-ld")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "[]",
        "[{}, []]",
        '{"@context": {"t": "http://e/t"}}',
        '{"@context": {}, "@graph": []}',
        '{"@graph": [{}]}',
    ],
)
def test_json_that_says_nothing_is_an_empty_document(text):
    assert outcome(text, "json-ld") == 0


def test_documents_that_only_comment_or_declare_stay_empty_documents():
    assert outcome("# nothing\n@prefix e: <http://e/> .\n", "turtle") == 0
    assert outcome("# nothing\n", "nt") == 0
    assert outcome(f"<rdf:RDF {RDF}/>", "xml") == 0


@pytest.mark.parametrize("padding", [0, 20_000])
def test_a_remote_context_is_refused_in_plain_words(padding):
    text = '{"@context": "https://schema.org/", "name": "' + "x" * padding + '"}'
    assert "contexts are not fetched" in outcome(text, "json-ld")


# ---- encodings
@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("padding", [0, 20_000])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-32", "utf-8-sig"])
def test_other_encodings_are_read_or_refused(name, encoding, padding):
    assert isinstance(outcome((GOOD[name] + " " * padding).encode(encoding), name), (int, str))


@pytest.mark.parametrize("name", GOOD)
@pytest.mark.parametrize("padding", [0, 20_000])
@pytest.mark.parametrize("odd", [b"\x00", b"\xff", b"\xc3\x28", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"])
def test_bytes_that_are_no_text_are_read_or_refused(name, odd, padding):
    data = GOOD[name].encode().replace(b"v", b"v" + odd, 1) + b" " * padding
    assert isinstance(outcome(data, name), (int, str))


# ---- the parser process
@pytest.mark.parametrize("name", GOOD)
def test_a_document_reads_the_same_in_this_process_and_in_another(name):
    text = GOOD[name]
    dictionary = Dictionary()
    here, there = parse(dictionary, text, name), parse(dictionary, text, name, limits=EVERYWHERE)
    assert len(here) == len(there) > 0
    assert here.predicates.tolist() == there.predicates.tolist()
    assert here.graphs.tolist() == there.graphs.tolist()


@pytest.mark.parametrize("name", GOOD)
def test_errors_have_the_same_place_in_this_process_and_in_another(name):
    text = GOOD[name].rstrip(" .})/>:RDFrdf") + "\n ,,"
    assert outcome(text, name) == outcome(text, name, limits=EVERYWHERE)


def test_a_parser_serves_many_documents_and_survives_bad_ones():
    POOL.close()
    for _ in range(3):
        assert outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) > 0
        assert "line 1" in outcome("<u:s> <u:p> ,", "turtle", limits=EVERYWHERE)
    [process] = POOL._idle
    assert process.usable


def test_a_document_that_takes_too_long_is_refused_alone():
    limits = replace(EVERYWHERE, parser_cpu_s=0.05, parser_cpu_s_per_mib=0.0)
    text = DOCUMENTS["bases on bases"][1](800_000)
    assert "more than 0.1 s of CPU time (parser_cpu_s" in outcome(text, "turtle", limits=limits)
    assert outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) > 0


def test_a_document_that_takes_too_much_memory_is_refused_alone():
    limits = replace(EVERYWHERE, parser_memory_mb=128)
    text = '{"@context":{"e":"http://e/"},"@graph":[' + ",".join(['{"e:p":"text","e:q":1}'] * 200_000) + "]}"
    assert "more than 128 MB (parser_memory_mb)" in outcome(text, "json-ld", limits=limits)


def test_a_document_that_expands_too_far_is_refused():
    limits = replace(EVERYWHERE, expansion_mib=1)
    text = DOCUMENTS["a long prefix"][1](60_000)
    assert "(expansion_mib, expansion_factor)" in outcome(text, "turtle", limits=limits)


def test_a_document_whose_parser_was_killed_is_parsed_again_once(monkeypatch):
    kills = []
    send = ParserProcess._send

    def killing(self, kind, payload):
        send(self, kind, payload)
        if kind == b"P" and len(kills) < limit:
            kills.append(self._process.pid)
            os.kill(self._process.pid, signal.SIGKILL)
            self._process.wait()

    monkeypatch.setattr(ParserProcess, "_send", killing)
    limit = 1
    assert outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) > 0
    assert len(kills) == 1
    limit = 3
    assert "was killed" in outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE)


def test_a_parser_that_does_not_answer_is_replaced(monkeypatch):
    monkeypatch.setattr(parser_process, "_STALLED_S", 0.1)
    monkeypatch.setattr(parser_process, "_STALLED_FACTOR", 0.0)
    process = ParserProcess(EVERYWHERE)
    os.kill(process._process.pid, signal.SIGSTOP)
    with pytest.raises(DataError, match="CPU time"):
        list(process.parse(lambda _: b"", parsing.Format.TURTLE, None))
    process.close()


def test_a_document_that_was_given_up_half_way_does_not_reach_the_next_one():
    text = "".join(f"<u:s> <u:p> {i} .\n" for i in range(100_000)).encode()
    blocks = [text[i : i + (1 << 20)] for i in range(0, len(text), 1 << 20)]
    parts = POOL.parse(lambda _: blocks.pop(0) if blocks else b"", parsing.Format.TURTLE, None, EVERYWHERE, wait=True)
    next(parts)
    parts.close()
    assert len(parse(Dictionary(), GOOD["trig"], "trig", limits=EVERYWHERE)) == 1


def test_many_threads_share_the_parsers():
    found: list[int | str] = []
    text = "".join(f"<u:s> <u:p> {i} .\n" for i in range(2_000))
    threads = [threading.Thread(target=lambda: found.append(outcome(text, "turtle"))) for _ in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found == [2_000] * 12
    assert len(POOL._idle) <= parser_process.PARSERS


def test_a_forked_process_has_parsers_of_its_own():
    assert outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) > 0
    child = os.fork()
    if child == 0:
        os._exit(0 if not POOL._idle and outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) == 8 else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert outcome(GOOD["turtle"], "turtle", limits=EVERYWHERE) > 0


def test_parsers_end_with_their_process_and_leave_no_warning():
    code = """
        from penstock.rdf.parsing import parse
        from penstock.rdf.parser_process import POOL
        from penstock.core._native import Dictionary
        parse(Dictionary(), "# long\\n" * 3000 + "<u:s> <u:p> 1 .", "turtle")
        print(POOL._idle[0]._process.pid)
    """
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    command = [sys.executable, "-W", "always", "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment)
    assert done.stderr == ""
    assert not Path(f"/proc/{int(done.stdout)}").exists()


# ---- files
def test_a_gzip_bomb_is_read_in_bounded_memory(tmp_path):
    path = tmp_path / "a.ttl.gz"
    with gzip.open(path, "wb") as file:
        for _ in range(200):
            file.write(b" " * (1 << 20))
        file.write(b"<http://e/s> <http://e/p> 1 .")
    before = memory_kb("VmRSS")
    assert sum(len(part) for part in read(Dictionary(), Source.of(path))) == 1
    assert memory_kb("VmRSS") - before < 60 << 10


def test_large_files_of_every_format_are_read_in_parts(tmp_path):
    texts = {
        "a.ttl": "".join(f'<u:s{i}> <u:p> "{"x" * 50}" .\n' for i in range(60_000)),
        "a.rdf": f"<rdf:RDF {RDF}>" + '<e:C><e:p rdf:resource="u:o"/></e:C>' * 30_000 + "</rdf:RDF>",
        "a.jsonld": "[" + ",".join('{"u:p": "text", "u:q": 1}' for _ in range(30_000)) + "]",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
        parts = list(read(Dictionary(), Source.of(tmp_path / name)))
        assert sum(len(part) for part in parts) == 60_000
        assert len(parts) > 1


def test_a_json_file_without_a_triple_is_an_error(tmp_path):
    path = tmp_path / "x.json"
    path.write_text('{"temperature": 1}')
    with pytest.raises(DataError, match=r"x\.json: the JSON document has no triple"):
        list(read(Dictionary(), Source.of(path)))
