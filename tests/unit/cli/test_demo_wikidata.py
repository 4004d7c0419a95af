"""The demonstration with mutations: its answers are those of the model, and its events those of the generator."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from itertools import pairwise

import pytest

import penstock
from penstock.cli import main
from penstock.cli.local.demo import MUTATIONS, Dataset, Demonstration, examples
from penstock.cli.local.recording import replay
from support.answers import Rows, difference, from_api
from support.oracle import OracleEngine

FOLDER = examples("wikidata")
TEXTS = {path.stem: path.read_text(encoding="utf-8") for path in sorted((FOLDER / "queries").glob("*.rq"))}


@pytest.fixture(scope="module")
def answered():
    """By query: the evaluations of the engine and of the model."""
    shown = Demonstration.of(Dataset.wikidata)
    model, found = OracleEngine(lambda: 1 << 50), {}
    with penstock.Engine() as engine:
        shown.prepare(engine, FOLDER)
        model.declare_stream(MUTATIONS, batch_ms=60_000, timing=())
        queries = {stem: engine.register(text) for stem, text in TEXTS.items()}
        models = {stem: model.register(re.sub(r"^#.*$", "", text, flags=re.MULTILINE)) for stem, text in TEXTS.items()}
        assert replay(engine, shown.recordings, speed=None, after_step=lambda _: True) > 500
        assert not engine.dead_letters()
        assert not engine.late(MUTATIONS)
        last = 0
        for time, patch in shown.recordings[0].events():
            model.push(MUTATIONS, patch.decode(), time, "rdf-patch")
            last = time
        model.advance(MUTATIONS, last)
        for stem, query in queries.items():
            found[stem] = query.poll(), models[stem].poll()
    return found


@pytest.mark.parametrize("stem", TEXTS)
def test_every_answer_is_that_of_the_model(answered, stem):
    got, expected = answered[stem]
    assert [evaluation.time for evaluation in got] == [evaluation.time for evaluation in expected]
    for one, other in zip(got, expected, strict=True):
        ordered = isinstance(other.answer, Rows) and other.answer.ordered
        what = difference(other.answer, from_api(one.answer, ordered=ordered))
        assert what is None, f"{stem} at {one.time}: {what}"


def test_the_queries_show_what_they_promise(answered):
    counts = [int(str(next(iter(evaluation.answer))["offices"])) for evaluation in answered["1-offices"][0]]
    assert any(later < earlier for earlier, later in pairwise(counts))
    for stem in ("2-resigned", "3-replaced", "4-vacancies"):
        assert sum(len(evaluation.answer) > 0 for evaluation in answered[stem][0]) >= 5, stem
    headless = [{str(row["city"]) for row in evaluation.answer} for evaluation in answered["5-headless"][0]]
    assert any(later - earlier for earlier, later in pairwise(headless))
    assert any(earlier - later for earlier, later in pairwise(headless))


def test_the_file_is_what_the_generator_writes_and_is_small():
    events = (FOLDER / "mutations.jsonl").read_bytes()
    made = subprocess.run([sys.executable, str(FOLDER / "generate.py")], capture_output=True, check=True)
    assert made.stdout == events
    assert len(events) < 2_000_000
    operations = {json.loads(line)["operation"] for line in events.splitlines()}
    assert operations == {"import", "diff", "delete", "reconcile"}


def test_the_command_prints_answers(capsys):
    assert main(["demo", "wikidata", "--plain", "--speed", "100000", "--seconds", "0"]) == 0
    out = capsys.readouterr().out
    assert "5 standing" in out
    assert all(stem in out for stem in TEXTS)
