"""durability="commit": what was returned from is there after a crash, once; disks that fill up; logs that are
damaged.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import threading
from itertools import pairwise

import pytest
import rdflib

import penstock
from penstock import DataError, LimitError, StorageError
from penstock.engine.checkpoint.log_file import MAGIC, frames, log_numbers, log_path
from penstock.engine.checkpoint.write_ahead_log import WriteAheadLog
from support.bench import Bench, nt, timeline

TRIPLE = b"<urn:a> <urn:p> <urn:b> ."


@pytest.fixture
def bench(make_bench, tmp_path):
    return make_bench(data_dir=tmp_path / "data", durability="commit")


def crashed(bench, tmp_path, **settings):
    """An engine over what the disk holds now; the one before ends as a process that is killed: nothing is written."""
    copy = tmp_path / f"copy-{len(list(tmp_path.iterdir()))}"
    shutil.copytree(bench.settings["data_dir"], copy)
    return Bench(**bench.settings | {"data_dir": copy} | settings)


def entries(folder):
    """The entries that follow the checkpoint."""
    (position,) = folder.glob("checkpoint-*/log.json")
    after, found = json.loads(position.read_text())["entry"], []
    for number in log_numbers(folder):
        found += frames(log_path(folder, number), found[-1].number if found else after)
    return found


class TestRecovery:
    def test_every_verb_is_there_after_a_crash(self, bench, tmp_path):
        engine = bench.engine
        engine.load(b"<urn:a> <urn:name> 'A' .", format="turtle", graph="urn:g")
        engine.update("INSERT DATA { <urn:b> <urn:name> 'B' }")
        bench.declare("s", lateness_ms=50, timing="all")
        bench.declare("gone")
        engine.drop_stream("urn:gone")
        query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY q AS")
        bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY stopped AS").stop()
        bench.push("s", 100, "a p b")
        engine.push("urn:s", [(rdflib.URIRef("urn:c"), rdflib.URIRef("urn:p"), rdflib.Literal("x\n"))], 200)
        engine.push("urn:s", "@prefix : <urn:> . :d :p :e .", 300, format="turtle")
        engine.push_events("urn:s", [(400, "bad"), (20, nt("a p late")), (700, nt("f p g")), ("when", nt("a p b"))])
        bench.advance("s", 1_500)
        expected = timeline(query)
        back = crashed(bench, tmp_path)
        assert back.engine.query("ASK { GRAPH <urn:g> { <urn:a> <urn:name> 'A' } }")
        assert back.engine.query("ASK { <urn:b> <urn:name> 'B' }")
        assert list(back.engine.streams) == ["urn:s"]
        assert list(back.engine.queries) == ["q"]
        evaluations = back.engine.queries["q"].poll()
        assert {e.attempt for e in evaluations} == {2}
        assert [e.time for e in evaluations] == list(expected) == [1_000]
        assert sorted(str(row["s"]) for row in evaluations[0].answer) == ["urn:a", "urn:c", "urn:d", "urn:f"]
        assert [e.timestamp for e in back.engine.late("urn:s")] == [20]
        assert len(back.engine.dead_letters()) == 2
        same = ("watermark", "closed", "events", "tuples", "late", "push_again")
        before, after = (b.engine.stats()["streams"]["urn:s"] for b in (bench, back))
        assert {k: before[k] for k in same} == {k: after[k] for k in same}

    def test_after_a_checkpoint_only_what_came_later_is_applied_again(self, bench, tmp_path):
        bench.declare("s", timing="all")
        query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY q AS")
        bench.advance("s", 1_000)
        query.poll()
        bench.engine.checkpoint()
        folder = bench.settings["data_dir"]
        assert entries(folder) == []
        assert len(log_numbers(folder)) == 1
        bench.advance("s", 3_000)
        assert len(entries(folder)) == 1
        back = crashed(bench, tmp_path)
        assert list(timeline(back.engine.queries["q"])) == [2_000, 3_000]

    def test_attempts_count_on_over_crashes_without_a_checkpoint(self, bench, tmp_path):
        bench.declare("s", timing="all")
        bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY q AS")
        once = crashed(bench, tmp_path)
        once.advance("s", 1_000)
        once.advance("s", 2_000)
        twice = crashed(once, tmp_path)
        assert [(e.time, e.attempt) for e in twice.engine.queries["q"].poll()] == [(2_000, 3)]

    def test_the_clock_of_the_time_decides_again(self, make_bench, tmp_path):
        wall = [1_000_000]
        bench = make_bench(data_dir=tmp_path / "data", durability="commit", clock=lambda: wall[0])
        bench.declare("s", timing="all", max_ahead_ms=1_000)
        with pytest.raises(DataError, match="max_ahead_ms"):
            bench.push("s", 1_500_000, "a p b")
        wall[0] = 1_500_000
        back = crashed(bench, tmp_path)
        assert back.engine.stats()["streams"]["urn:s"]["events"] == 0
        assert len(back.engine.dead_letters()) == 1

    def test_what_was_refused_is_not_in_the_log(self, make_bench, tmp_path):
        limits = penstock.Limits(max_catch_up=10)
        bench = make_bench(data_dir=tmp_path / "data", durability="commit", limits=limits)
        bench.declare("s", timing="all")
        bench.register("?s :p ?o", "s RANGE 1s STEP 1s")
        bench.advance("s", 0)
        before = entries(bench.settings["data_dir"])
        with pytest.raises(LimitError):
            bench.advance("s", 1_000_000)
        with pytest.raises(penstock.UnknownStreamError):
            bench.push("none", 1, "a p b")
        with pytest.raises(penstock.QueryError):
            bench.register("?s :p ?o", "unknown RANGE 1s")
        assert entries(bench.settings["data_dir"]) == before
        bench.advance("s", 2_000)
        assert crashed(bench, tmp_path).engine.stats()["streams"]["urn:s"]["watermark"] == 2_000

    def test_a_clean_end_leaves_nothing_to_apply(self, bench):
        bench.declare("s", timing="all")
        bench.push("s", 100, "a p b")
        bench.reopen()
        assert bench.engine.stats()["attempt"] == 1
        assert bench.engine.stats()["streams"]["urn:s"]["events"] == 1
        assert entries(bench.settings["data_dir"]) == []

    def test_another_durability_reads_the_log_and_its_checkpoints_end_it(self, bench, tmp_path):
        bench.declare("s", timing="all")
        back = crashed(bench, tmp_path, durability="checkpoint")
        assert list(back.engine.streams) == ["urn:s"]
        back.engine.checkpoint()
        assert entries(back.settings["data_dir"]) == []
        again = crashed(back, tmp_path, durability="commit")
        assert list(again.engine.streams) == ["urn:s"]

    def test_a_concurrent_reader_sees_what_is_logged(self, bench):
        bench.engine.update("INSERT DATA { <urn:a> <urn:p> 1 }")
        with penstock.Engine(data_dir=bench.settings["data_dir"], read_only=True) as reader:
            assert reader.query("ASK { <urn:a> <urn:p> 1 }") is True

    def test_columns_are_logged_as_text(self, bench, tmp_path):
        bench.declare("s", timing="all")
        ids = bench.engine.encode([rdflib.URIRef("urn:a"), rdflib.Literal("é", lang="fr")])
        bench.engine.push_columns("urn:s", [5, 6], [ids[0]] * 2, [ids[0]] * 2, [ids[1]] * 2)
        back = crashed(bench, tmp_path)
        bench.engine.encode([rdflib.BNode("x")])
        assert back.engine.stats()["streams"]["urn:s"]["events"] == 2
        (blank,) = bench.engine.encode([rdflib.BNode("x")])
        with pytest.raises(DataError, match="blank nodes"):
            bench.engine.push_columns("urn:s", [7], [blank], [ids[0]], [ids[0]])

    def test_unpolled_evaluations_are_bounded_when_they_fire_again(self, make_bench, tmp_path):
        limits = penstock.Limits(max_unpolled=5)
        bench = make_bench(data_dir=tmp_path / "data", durability="commit", limits=limits)
        bench.declare("s", timing="all")
        query = bench.register("?s :p ?o", "s RANGE 1s STEP 1s", header="REGISTER QUERY q AS")
        for second in range(20):
            bench.advance("s", 1_000 * second)
            query.poll()
        back = crashed(bench, tmp_path)
        assert list(timeline(back.engine.queries["q"])) == [15_000, 16_000, 17_000, 18_000, 19_000]

    def test_a_file_is_in_a_checkpoint_when_it_is_loaded(self, bench, tmp_path):
        bench.declare("s", timing="all")
        path = tmp_path / "x.nt"
        path.write_bytes(TRIPLE)
        bench.engine.load(path)
        path.unlink()
        assert crashed(bench, tmp_path).engine.query("ASK { <urn:a> <urn:p> <urn:b> }") is True

    def test_the_size_limit_makes_a_checkpoint(self, make_bench, tmp_path):
        limits = penstock.Limits(log_bytes=2_000)
        bench = make_bench(data_dir=tmp_path / "data", durability="commit", limits=limits)
        bench.declare("s", timing="all")
        for time in range(100):
            bench.push("s", time, "a p b")
        log = bench.engine.stats()["log"]
        assert log["bytes"] < 2_000
        assert log["file"] > 3
        assert crashed(bench, tmp_path).engine.stats()["streams"]["urn:s"]["events"] == 100

    def test_it_requires_a_directory(self, tmp_path):
        with pytest.raises(DataError, match="data_dir"):
            penstock.Engine(durability="commit")
        with pytest.raises(DataError, match="durability is one of none, checkpoint, commit"):
            penstock.Engine(data_dir=tmp_path, durability="often")


class TestGroupCommit:
    def test_many_writers_share_a_flush(self, bench, tmp_path, monkeypatch):
        bench.declare("s", timing="all")
        entered, go, real = threading.Event(), threading.Event(), os.fdatasync

        def slow(descriptor):
            entered.set()
            assert go.wait(30)
            real(descriptor)

        before = bench.engine.stats()["log"]
        monkeypatch.setattr(os, "fdatasync", slow)
        threads = [threading.Thread(target=bench.push, args=("s", 10, f"a p b{n}")) for n in range(20)]
        for thread in threads:
            thread.start()
        assert entered.wait(30)
        while bench.engine.stats()["log"]["entry"] < before["entry"] + 20:
            pass  # all have appended while the first one flushes
        go.set()
        for thread in threads:
            thread.join(30)
        assert bench.engine.stats()["log"]["flushes"] - before["flushes"] <= 2
        assert crashed(bench, tmp_path).engine.stats()["streams"]["urn:s"]["events"] == 20

    def test_reads_do_not_wait_for_a_flush(self, bench, monkeypatch):
        bench.declare("s", timing="all")
        entered, go, real = threading.Event(), threading.Event(), os.fdatasync
        monkeypatch.setattr(os, "fdatasync", lambda descriptor: (entered.set(), go.wait(30), real(descriptor)))
        writer = threading.Thread(target=bench.push, args=("s", 10, "a p b"))
        writer.start()
        assert entered.wait(30)
        assert bench.engine.query("ASK {}") is True
        assert bench.engine.stats()["streams"]["urn:s"]["events"] == 1
        go.set()
        writer.join(30)


class FullDisk:
    """`os.write` to a log that has room for so many bytes more."""

    def __init__(self, monkeypatch, room):
        self.room, self._write = room, os.write
        monkeypatch.setattr(os, "write", self.write)

    def write(self, descriptor, data):
        data = bytes(data)
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        written = self._write(descriptor, data[: self.room])
        self.room -= written
        return written


class TestFailures:
    @pytest.mark.parametrize("room", [0, 1, 20, 60])
    def test_a_full_disk_refuses_changes_and_nothing_is_half_applied(self, bench, tmp_path, monkeypatch, room):
        bench.declare("s", timing="all")
        bench.push("s", 100, "a p b")
        disk = FullDisk(monkeypatch, room)
        with pytest.raises(StorageError, match=r"nothing was changed.*No space left"):
            bench.push("s", 200, "a p c")
        with pytest.raises(StorageError):
            bench.engine.update("INSERT DATA { <urn:x> <urn:p> 1 }")
        assert bench.engine.stats()["streams"]["urn:s"]["events"] == 1
        assert bench.engine.query("ASK { ?s ?p ?o }") is False
        disk.room = 1 << 30
        bench.push("s", 300, "a p d")
        back = crashed(bench, tmp_path)
        assert back.engine.stats()["streams"]["urn:s"]["events"] == 2

    def test_a_flush_that_fails_refuses_changes_until_a_checkpoint_succeeds(self, bench, tmp_path, monkeypatch):
        bench.declare("s", timing="all")

        def fails(descriptor):
            raise OSError(errno.EIO, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(os, "fdatasync", fails)
            with pytest.raises(StorageError, match="may not be durable"):
                bench.push("s", 100, "a p b")
        with pytest.raises(StorageError, match="until a checkpoint succeeds"):
            bench.push("s", 200, "a p c")
        assert bench.engine.query("ASK {}") is True
        bench.engine.checkpoint()
        bench.push("s", 300, "a p d")
        assert crashed(bench, tmp_path).engine.stats()["streams"]["urn:s"]["events"] == 2

    def test_a_checkpoint_that_fails_leaves_the_log_as_it_is(self, bench, tmp_path, monkeypatch):
        bench.declare("s", timing="all")
        with monkeypatch.context() as patched:
            patched.setattr(
                "penstock.engine.checkpoint.durability.save", lambda *_: (_ for _ in ()).throw(StorageError("full"))
            )
            with pytest.raises(StorageError):
                bench.engine.checkpoint()
        bench.push("s", 100, "a p b")
        assert crashed(bench, tmp_path).engine.stats()["streams"]["urn:s"]["events"] == 1


class TestDamage:
    def logged(self, folder, count=5):
        wal = WriteAheadLog(folder, 1, 1)
        for n in range(count):
            wal.append(b"payload %d" % n)
        wal.close()
        return log_path(folder, 1)

    def test_a_tail_that_is_torn_anywhere_is_left_out(self, tmp_path):
        path = self.logged(tmp_path)
        whole = path.read_bytes()
        ends = [len(MAGIC), *(frame.end for frame in frames(path, 0))]
        for size in range(len(whole) + 1):
            path.write_bytes(whole[:size])
            assert len(list(frames(path, 0))) == sum(end <= size for end in ends[1:])

    def test_a_changed_byte_ends_the_log_where_no_later_entry_was_durable(self, tmp_path):
        path = self.logged(tmp_path)
        whole = bytearray(path.read_bytes())
        ends = [len(MAGIC), *(frame.end for frame in frames(path, 0))]
        for number, (start, end) in enumerate(pairwise(ends)):
            for at in range(start, end):
                damaged = whole[:at] + bytes([whole[at] ^ 0x40]) + whole[at + 1 :]
                path.write_bytes(damaged)
                assert len(list(frames(path, 0))) == number

    def test_a_durable_entry_that_is_damaged_is_an_error(self, bench, tmp_path):
        bench.declare("s", timing="all")
        for time in range(5):
            bench.push("s", time, "a p b")
        copy = tmp_path / "copy"
        shutil.copytree(bench.settings["data_dir"], copy)
        path = log_path(copy, log_numbers(copy)[-1])
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        path.write_bytes(data)
        with pytest.raises(StorageError, match="corrupt at byte"):
            penstock.Engine(data_dir=copy, durability="commit")

    def test_a_file_that_has_lost_its_end_before_another_one_is_an_error(self, bench, tmp_path):
        bench.declare("s", timing="all")
        back = crashed(bench, tmp_path)
        back.push("s", 1, "a p b")
        folder = back.settings["data_dir"]
        first = log_path(folder, log_numbers(folder)[0])
        first.write_bytes(first.read_bytes()[:-1])
        with pytest.raises(StorageError, match="was durable"):
            crashed(back, tmp_path)

    def test_another_files_bytes_are_refused(self, bench, tmp_path):
        copy = tmp_path / "copy"
        shutil.copytree(bench.settings["data_dir"], copy)
        log_path(copy, 99).write_bytes(b"what is this?")
        with pytest.raises(StorageError, match="is not a write-ahead log"):
            penstock.Engine(data_dir=copy)

    def test_only_the_owner_may_read_it(self, bench):
        folder = bench.settings["data_dir"]
        assert {log_path(folder, n).stat().st_mode & 0o777 for n in log_numbers(folder)} == {0o600}
