"""The 19 CityBench texts over real readings of Aarhus: every answer equals brute force."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyoxigraph as ox
import pytest

import penstock
from support import citybench, shared
from support.answers import Answer, Rows, difference, from_api

if TYPE_CHECKING:
    from pathlib import Path

shared.need("data/citybench")
TEXTS = [pytest.param(text, id=text.name) for text in citybench.texts()]
SECONDS = 12


def play(text: citybench.Text, events: dict[str, list[citybench.Event]], begin: int, end: int) -> dict[int, Answer]:
    """Register one text, push all its streams' readings second by second, and return instant -> answer."""
    found: dict[int, Answer] = {}
    with penstock.Engine() as engine:
        for graph in text.header.default_graphs:
            engine.load(citybench.static_file(graph), graph=graph, format="turtle")
        for stream in text.streams:
            engine.declare_stream(stream, batch_ms=100, timing="all")
        query = engine.register(text.text)
        for stream in text.streams:
            engine.advance(stream, begin)
        for low in range(begin, end, 1000):
            for stream in text.streams:
                engine.push_events(stream, [e for e in events[stream] if low < e[0] <= low + 1000])
                engine.advance(stream, low + 1000)
            for evaluation in query.poll():
                assert evaluation.windows.keys() == set(text.streams)
                found[evaluation.time] = from_api(evaluation.answer)
    return found


def differs(expectation: citybench.Expectation, time: int, answer: Answer) -> str | None:
    return difference(expectation.at(time), citybench.folded(answer))


def test_all_texts_are_there() -> None:
    assert len(TEXTS) == 19


@functools.cache
def replay(name: str, seconds: int) -> citybench.Expectation:
    """Return the brute force of one text over its replayed readings; its answers are computed once."""
    text = next(text for text in citybench.texts() if text.name == name)
    return citybench.Expectation(text, {stream: citybench.replayed(stream, seconds + 1) for stream in text.streams})


def check_replay(text: citybench.Text, seconds: int) -> None:
    expectation = replay(text.name, seconds)
    found = play(text, expectation.events, 0, seconds * 1000)
    assert sorted(found) == text.instants(seconds * 1000)
    for time, answer in found.items():
        what = differs(expectation, time, answer)
        assert what is None, f"{text.name} at {time}: {what}"


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_a_longer_replay_gives_the_brute_force_answers(text: citybench.Text) -> None:
    check_replay(text, 60)


@pytest.mark.parametrize("text", TEXTS)
def test_replayed_readings_give_the_brute_force_answers(text: citybench.Text) -> None:
    check_replay(text, SECONDS)


def by_own_time(text: citybench.Text, start: str, end: str) -> None:
    events = {stream: citybench.observed(stream, start, end) for stream in text.streams}
    clock = shared.module("data/citybench/citybench2nq.py").ms
    begin, until = clock(start, "T"), clock(end, "T")
    expectation = citybench.Expectation(text, events)
    found = play(text, events, begin, until)
    steps = [w.step for w in text.header.windows]
    assert sorted(found) == sorted({t for s in steps for t in range(begin - begin % s + s, until + 1, s) if t > begin})
    for time, answer in found.items():
        what = differs(expectation, time, answer)
        assert what is None, f"{text.name} at {time}: {what}"


@pytest.mark.parametrize("text", TEXTS)
def test_ten_minutes_by_the_readings_own_time(text: citybench.Text) -> None:
    by_own_time(text, "2014-08-01T07:49:00", "2014-08-01T07:59:00")


@pytest.mark.long
@pytest.mark.parametrize("text", TEXTS)
def test_an_hour_by_the_readings_own_time(text: citybench.Text) -> None:
    by_own_time(text, "2014-08-01T11:00:00", "2014-08-01T12:00:00")


# ---- the same through the command line
def from_json(line: dict[str, Any]) -> Answer:
    if "boolean" in line:
        return bool(line["boolean"])
    names = line["head"]["vars"]
    rows = ({k: _term(v) for k, v in row.items()} for row in line["results"]["bindings"])
    return Rows(tuple(names), tuple(tuple(row.get(n) for n in names) for row in rows))


def _term(value: dict[str, str]) -> Any:
    if value["type"] == "uri":
        return ox.NamedNode(value["value"])
    if value["type"] == "bnode":
        return ox.BlankNode(value["value"])
    if "xml:lang" in value:
        return ox.Literal(value["value"], language=value["xml:lang"])
    return ox.Literal(
        value["value"], datatype=ox.NamedNode(value.get("datatype", "http://www.w3.org/2001/XMLSchema#string"))
    )


def test_all_texts_at_once_by_penstock_run(tmp_path: Path) -> None:
    streams = sorted({stream for text in citybench.texts() for stream in text.streams})
    graphs = sorted({graph for text in citybench.texts() for graph in text.header.default_graphs})
    events = {stream: citybench.replayed(stream, SECONDS + 1) for stream in streams}
    command = [sys.executable, "-m", "penstock", "run"]
    command += [str(citybench.bundle() / "queries" / f"{text.name}.rq") for text in citybench.texts()]
    for graph in graphs:
        # The bundle's .n3 files are Turtle; a link gives them the name that says so.
        link = tmp_path / f"{graph.split('/')[-2]}-{citybench.static_file(graph).stem}.ttl"
        link.symlink_to(citybench.static_file(graph))
        command += ["--data", f"{graph}={link}"]
    for stream in streams:
        recorded = tmp_path / (stream.split("#")[1] + ".nqs")
        lines = (f"{time} {line}\n" for time, data in events[stream] for line in data.split("\n"))
        recorded.write_text("".join(lines), encoding="utf-8")
        command += ["--stream", f"{stream}={recorded}", "--timing", f"{stream}=all"]
    done = subprocess.run(
        [*command, "--speed", "max", "--format", "jsonl"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found: dict[str, dict[int, Answer]] = {text.name: {} for text in citybench.texts()}
    for line in map(json.loads, done.stdout.splitlines()):
        found[line["query"]][line["time"]] = from_json(line)
    for text in citybench.texts():
        expectation = replay(text.name, SECONDS)
        assert set(text.instants((SECONDS - 1) * 1000)) <= set(found[text.name]), text.name
        for time, answer in found[text.name].items():
            what = differs(expectation, time, answer)
            assert what is None, f"{text.name} at {time}: {what}"
