#!/usr/bin/env python3
"""Moves the Python tree to the layout of house.md §1. Run at the top of a checkout; `--imports` only rewrites references.

A pure function of the tree: the commit that it makes is its output and nothing else; mends by hand are the next commit.
"""
from __future__ import annotations
import re, subprocess, sys
from pathlib import Path

MOVES = {}
def group(old_package, new_package, names):
    for item in names.split():
        old, _, new = item.partition(">")
        MOVES[f"{old_package}.{old}"] = f"{new_package}.{new or old}"

group("store", "core", "_native arrow")
group("engine", "event_time", "grid lateness units>time_units gaps")
group("engine", "engine.intake", "declaration streams events intake>arrival refused>rejected_events idle>idle_sources storing>graph_loading bulk>bulk_intake terms>event_triples")
group("engine", "engine.windows", "windows>window_contents pace>trigger schedule backlog releasing>slice_release forgetting>term_collection")
group("engine", "engine.standing", "member membership groups cohorts registry evaluate>evaluator execution difference>stream_operator standing>standing_query status>query_status derived>derived_streams firing")
group("engine", "engine.oneshot", "oneshot>one_shot cache explaining planning>engine_catalogue")
group("engine", "engine.answers", "answers>answer_values blocks>result_blocks formats>result_formats lines>json_lines inbox>result_queue pairs unpolled factors")
group("engine", "engine.checkpoint", "checkpoint>engine_checkpoint saving>checkpoint_writer restoring>checkpoint_reader arrays directory>data_directory write_ahead_log log_entries log_file durability recovery")
group("engine", "engine", "core>engine_core")
group("cluster", "replication", "spine>sequencer replica replica_state world>state_machine history election heartbeats placement>placement_view kept>retention topics>cluster_topics status>status_topic leaps load_files commits>absorption")
group("cluster", "term_ids", "terms>cluster_terms encoding>reencoding rpc>flight_terms term_tables")
group("ingest", "term_ids", "outgoing>outgoing_terms")
group("ingest", "ingest", "adapting>event_adapter message>event_message refused>refused_records wanted>predicate_filter declared>declared_streams")
group("dataplane", "remote", "connecting serving>region_server")
group("node", "remote", "control>control_connection forking>fork_join fragments graph>remote_graph serving>control_server")
group("cluster", "remote", "stores_graph store_links")
group("cluster", "services.query_engine", "query_engine buckets catching_up>catch_up progress>bucket_progress outlet>derived_stream_sink result_sinks told>commit_metrics checkpoint>replica_checkpoint")
group("cluster", "services.store", "store follower shard_store stored_graph leases shard_checkpoints saving_beside>background_checkpoint")
group("cluster", "services.coordinator", "coordinator active>active_state registrar requests>topic_requests insertion wanted>predicate_demand")
group("http", "services.coordinator", "coordinator>http_routes")
group("cluster", "services.dictionary", "dictionary dictionary_node>dictionary_instance known_terms flight_requests flight_server")
group("ingest", "services.dispatcher", "dispatcher outputs>output_records silence>idle_partitions stream_time open_batches")
group("ingest", "services.adaptor", "adaptor")
for service in "adaptor dispatcher dictionary coordinator store query_engine".split():
    MOVES[f"services.{service}"] = f"services.{service}.service"
MOVES["services.spark_adaptor"] = "services.adaptor.spark"
MOVES["services.cluster_settings"] = "runtime.cluster_settings"
MOVES["web_access"] = "http.web_access"
MOVES["web_server"] = "http.web_server"
MOVES["runtime.web"] = "runtime.health_routes"
PACKAGES = {"store": "core", "dataplane": "remote"}  # whose __init__ moves

CLASSES = dict(pair.split(">") for pair in """
Heart>HeartbeatSender Ear>FailureDetector Told>CommitMetrics Spine>Sequencer SpineRecord>SequencedRecord World>StateMachine
Outlet>DerivedStreamSink Silence>IdlePartitions Inbox>ResultQueue Sieve>PredicateFilter Narrowing>PredicatePushdown
AwayError>UnavailableError SavingBeside>BackgroundCheckpoint Pace>Trigger GridPace>GridTrigger CountPace>CountTrigger
Adapting>EventAdapter Core>EngineCore CompatibleRows>JoinHashTable HashSided>HashJoinBase Remembered>LookupMemo
""".split())
NAMES = dict(pair.split(">") for pair in """
spine>sequencer world>state_machine pace>trigger _pace>_trigger inbox>result_queue outlet>derived_sink outlets>derived_sinks _open_outlet>_open_derived_sink
_heart>_heartbeat_sender heart>heartbeat_sender _ear>_failure_detector ear>failure_detector fates>outcomes trouble>last_error _trouble>_last_error
sieve>predicate_filter _sieve>_predicate_filter _sieves>_predicate_filters _silence>_idle_partitions _narrowing>_pushdown
restore_world>restore_state_machine apart_from_pace>apart_from_trigger saving_beside>background_checkpoint
""".split())
# ambiguous: told, kept, needs, wanted, away, era, ghost, note, let_go: by hand, file by file

DOCSTRINGS = {
    "core": None,
    "event_time": "Event time: grids of instants, watermarks and lateness, units of time, gaps. Pure functions and values.",
    "engine/intake": "Input of an engine: stream declarations, events, stored data, rejected events, idle sources.",
    "engine/windows": "Windows: what each one holds, when evaluations are due, and which slices may go.",
    "engine/standing": "Standing queries: members, groups and cohorts, their registration and their evaluation.",
    "engine/oneshot": "One-shot queries and EXPLAIN over the latest stable snapshot.",
    "engine/answers": "Results: values, blocks that wait to be polled, the queue of each query, result formats.",
    "engine/checkpoint": "Durability of an engine: checkpoints, the write-ahead log, recovery.",
    "replication": "From a totally ordered log to a replica: sequencer, state machine, history, retention, membership of the cluster.",
    "term_ids": "Ids of terms in a cluster: the client of the dictionary, its cache, and re-encoding of columns.",
    "services/adaptor": "The adaptor: events to tuples of term ids. `python -m penstock.services.adaptor` runs it.",
    "services/dispatcher": "The dispatcher: event time, closed batches. Run: `python -m penstock.services.dispatcher`.",
    "services/dictionary": "The dictionary: durable ids of terms over Arrow Flight. `python -m penstock.services.dictionary` runs it.",
    "services/coordinator": "The coordinator: declarations, registrations, insertions, placement. Run: `python -m penstock.services.coordinator`.",
    "services/store": "The store: shards of the stored graph, served to engines. `python -m penstock.services.store` runs it.",
    "services/query_engine": "The query engine: buckets of standing queries, results. Run: `python -m penstock.services.query_engine`.",
}
MAIN = '''"""Run the {words} as a process; settings by `PENSTOCK_*`."""

from __future__ import annotations

import sys

from penstock.services.{name}.service import main

sys.exit(main())
'''

TREES = ("libs", "services", "tests", "benchmarks", "tools", "examples")
EDITED = (".py", ".pyi", ".md", ".toml", ".yml", ".yaml", ".txt", ".sh", ".cpp", ".hpp", ".rq")

def run(*command): subprocess.run(command, check=True)
def path_of(module): return Path("libs/penstock", *module.split("."))

def move():
    made = set()
    # to a parking place first: a module may become a package of the same name
    parked = {}
    for old, new in MOVES.items():
        for suffix in (".py", ".pyi"):
            source = path_of(old).with_suffix(suffix)
            if source.exists():
                park = Path("libs/penstock/.parked") / f"{new}{suffix}"
                park.parent.mkdir(exist_ok=True)
                run("git", "mv", str(source), str(park)); parked[park] = path_of(new).with_suffix(suffix)
    for old, new in PACKAGES.items():
        source = path_of(old) / "__init__.py"
        if source.exists():
            park = Path("libs/penstock/.parked") / f"{new}.__init__.py"
            run("git", "mv", str(source), str(park)); parked[park] = path_of(new) / "__init__.py"
    for park, target in parked.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        run("git", "mv", str(park), str(target))
        made.add(target.parent)
    for package, docstring in DOCSTRINGS.items():
        init = Path("libs/penstock", package, "__init__.py")
        if not init.exists():
            init.write_text(f'"""{docstring}"""\n')
        if package.startswith("services/"):
            name = package.partition("/")[2]
            init.with_name("__main__.py").write_text(MAIN.format(name=name, words=name.replace("_", " ")))
    Path("libs/penstock/cluster/__init__.py").unlink(missing_ok=True)
    Path("libs/penstock/.parked").rmdir() if Path("libs/penstock/.parked").exists() else None

def rewrite_text(text, python):
    # modules and packages, longest first, at a boundary
    olds = sorted([*MOVES, *PACKAGES], key=len, reverse=True)
    table = {**PACKAGES, **MOVES}
    pattern = re.compile(r"(?<![\w.])penstock\.(" + "|".join(map(re.escape, olds)) + r")(?![\w])")
    def module(match):
        return "penstock." + table[match[1]]
    def package_import(match):  # from penstock.PKG import mod[ as x]
        out = []
        indent, package, names = match[1], match[2], match[3]
        rest = []
        for name in (n.strip() for n in names.split(",")):
            bare, _, alias = name.partition(" as ")
            new = MOVES.get(f"{package}.{bare}")
            if new is None: rest.append(name); continue
            home, _, leaf = new.rpartition(".")
            if not alias and leaf != NAMES.get(bare, bare): alias = bare
            out.append(f"{indent}from PENSTOCK.{home} import {leaf}" + (f" as {alias}" if alias else ""))
        if not out: return match[0]
        if rest: out.insert(0, f"{indent}from PENSTOCK.{PACKAGES.get(package, package)} import {', '.join(rest)}")
        return "\n".join(out)
    if python:
        text = re.sub(r"^([ \t]*)from penstock\.([\w.]+) import ([\w ,]+?)$", package_import, text, flags=re.M)
    text = pattern.sub(module, text).replace("from PENSTOCK.", "from penstock.")
    paths = sorted([*MOVES, *PACKAGES], key=len, reverse=True)
    pathed = re.compile(r"(?<=libs/penstock/)(" + "|".join(re.escape(o.replace(".", "/")) for o in paths) + r")(?=\.pyi?\b|/|[`\s\"'\])])")
    text = pathed.sub(lambda m: table[m[1].replace("/", ".")].replace(".", "/"), text)
    short = re.compile(r"(?<![\w/])((?:engine|cluster|ingest|services|http|node|dataplane|store|runtime)/\w+)(?=\.py\b)")
    text = short.sub(lambda m: table.get(m[1].replace("/", "."), m[1].replace("/", ".")).replace(".", "/"), text)
    if python:
        text = rename(text, {**CLASSES, **NAMES})
    else:
        text = re.sub(r"`(\w+)`", lambda m: f"`{CLASSES.get(m[1], m[1])}`", text)
    return text

def rename(text, names):
    import io, tokenize
    lines = text.splitlines(keepends=True)
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return text
    exported = {f'"{old}"': f'"{new}"' for old, new in CLASSES.items() if names.get(old)}
    edits = [(t.start, t.end, names[t.string]) for t in tokens if t.type == tokenize.NAME and t.string in names]
    word = re.compile(r"(?<![\w.\"'])(" + "|".join(map(re.escape, names)) + r")(?!\w)|(?<=\.)(" + "|".join(map(re.escape, names)) + r")(?!\w)")
    for t in tokens:  # Python 3.11 gives an f-string as one token
        if t.type == tokenize.STRING and re.match(r"[rR]?[fF]", t.string) and t.start[0] == t.end[0]:
            new = re.sub(r"\{[^{}]*\}", lambda m: word.sub(lambda n: names[n[0]], m[0]), t.string)
            if new != t.string: edits.append((t.start, t.end, new))
    edits.sort()
    for (row, begin), (_, end), new in reversed(edits):
        line = lines[row - 1]
        lines[row - 1] = line[:begin] + new + line[end:]
    text = "".join(lines)
    return re.sub(r"(?s)__all__ = \[.*?\]", lambda m: re.sub(r'"\w+"', lambda n: exported.get(n[0], n[0]), m[0]), text)

def rewrite():
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        path = Path(name)
        if path.suffix not in EDITED and path.name not in ("Makefile", "Dockerfile", "Dockerfile.spark", "CMakeLists.txt", "stubtest_allowlist.txt"): continue
        if not path.exists() or path.is_symlink(): continue
        old = path.read_text()
        new = rewrite_text(old, path.suffix in (".py", ".pyi"))
        if new != old: path.write_text(new)

if __name__ == "__main__":
    if "--imports" not in sys.argv: move()
    rewrite()
    if "--imports" not in sys.argv:
        top, inner = Path("services"), Path("libs/penstock/services")
        if not inner.is_symlink():
            Path("tools/spark_submit").mkdir(exist_ok=True)
            run("git", "mv", "services/adaptor/bulk_load.py", "tools/spark_submit/bulk_load.py")
            run("git", "mv", "services/adaptor/stream_adaptor.py", "tools/spark_submit/stream_adaptor.py")
            run("git", "add", "-A")
            run("rm", "-rf", "services")
            run("git", "mv", str(inner), str(top))
            run("rm", "-rf", str(inner))
            inner.symlink_to("../../services")
            run("git", "add", "-A")
