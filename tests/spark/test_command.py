"""`penstock load --spark` as a user types it: killed in random stages, it leaves the data as they were, and goes on."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

import penstock

pytest.importorskip("pyspark", reason="the extra `spark` is not installed")

TRIPLES = 20_000


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "data.nt"
    lines = [f'<http://s/{i}> <http://p/{i % 5}> "value number {i}" .\n' for i in range(TRIPLES)]
    path.write_text("".join(lines) + "not a triple\n")
    return path


def start(file, data, *more):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "COLUMNS": "120"}
    arguments = ["load", "--spark", "--master", "local[2]", "--memory", "1g", "--data-dir", str(data), str(file), *more]
    return subprocess.Popen(
        [sys.executable, "-m", "penstock", *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, start_new_session=True,
    )  # fmt: skip


def checkpoint(data):
    return (data / "CURRENT").read_text().split()[0]


STAGES = ("parse", "terms", "dictionary", "edges", "store")


def killed_in(stage, process, data, delay_s):
    """Kill the process and its children within a stage: a moment after its folder has come into being."""
    begun, reported = data / "bulk-load" / stage, "sorting edges"  # the last message of the stage before the stores
    deadline = time.monotonic() + 600
    if stage == "store":
        while not process.stderr.readline().startswith(reported):
            assert process.poll() is None, "it ended before"
    else:
        while not begun.exists():
            assert process.poll() is None, process.stderr.read()
            assert time.monotonic() < deadline
            time.sleep(0.005)
    time.sleep(delay_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait(120)


@pytest.mark.parametrize(
    ("seed", "kills"), [(3, 2), *(pytest.param(seed, len(STAGES), marks=pytest.mark.long) for seed in (1, 2, 4))]
)
def test_killed_in_random_stages_it_leaves_the_data_as_they_were_and_completes(file, tmp_path, seed, kills):
    data, rng = tmp_path / "data", random.Random(seed)
    with penstock.Engine(data_dir=data) as engine:
        engine.update("INSERT DATA { <http://before> <http://p/0> <http://it> }")
    bad = tmp_path / "bad.jsonl"
    for stage in [STAGES[i] for i in sorted(rng.sample(range(len(STAGES)), kills))]:  # seed 3: terms, store
        delay_s = rng.uniform(0, 0.05 if stage == "store" else 0.5)  # what the engine itself does takes some 50 ms
        killed_in(stage, start(file, data, "--bad-lines", str(bad)), data, delay_s)
        with penstock.Engine(data_dir=data, read_only=True) as engine:
            (row,) = engine.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
            assert int(row["n"]) in ({1, TRIPLES + 1} if stage == "store" else {1}), stage  # never a part
    process = start(file, data, "--bad-lines", str(bad))
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert "resuming an earlier run" in err
    assert "parsing" not in err.split("resuming")[1]  # that stage was complete
    assert out.startswith((f"{TRIPLES:,} triples, ", "the load was complete"))
    assert "1 bad lines skipped" in out or out.startswith("the load")
    reported = json.loads(bad.read_text())
    assert (reported["line"], reported["text"]) == (TRIPLES + 1, "not a triple")
    with penstock.Engine(data_dir=data, read_only=True) as engine:
        (row,) = engine.query("SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
        assert int(row["n"]) == TRIPLES + 1
    assert {path.name for path in data.iterdir()} == {"LOCK", "CURRENT", checkpoint(data)}


def test_a_load_that_fails_says_why_and_leaves_nothing(file, tmp_path):
    data = tmp_path / "data"
    process = start(file, data, "--max-bad", "0", "--bad-lines", str(tmp_path / "bad.jsonl"))
    _, err = process.communicate(timeout=600)
    assert process.returncode == 1
    assert "more than 0 bad lines" in err
    assert (tmp_path / "bad.jsonl").exists()
    assert not list(data.glob("bulk-load*"))
    with penstock.Engine(data_dir=data, read_only=True) as engine:
        assert engine.query("ASK { ?s ?p ?o }") is False


def test_ctrl_c_ends_the_load_and_its_jvm(file, tmp_path):
    process = start(file, tmp_path / "data")
    for line in process.stderr:
        if line.startswith("starting"):
            break
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=300)
    deadline = time.monotonic() + 300
    while time.monotonic() < deadline:
        try:
            os.killpg(process.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail("processes of the load are left")


def test_data_files_are_loaded_by_a_mapping(tmp_path):
    file, mapping = tmp_path / "x.csv", tmp_path / "m.rq"
    file.write_text("id,v\n" + "".join(f"{i},value {i}\n" for i in range(2_000)))
    mapping.write_text("CONSTRUCT { ?s <urn:v> $.v } WHERE { BIND(IRI(CONCAT('urn:s:', $.id)) AS ?s) }")
    process = start(file, tmp_path / "data", "--mapping", str(mapping))
    out, err = process.communicate(timeout=600)
    assert process.returncode == 0, err
    assert out.startswith("2,000 triples, ")
    with penstock.Engine(data_dir=tmp_path / "data", read_only=True) as engine:
        assert engine.query("ASK { <urn:s:1999> <urn:v> 'value 1999' }")
