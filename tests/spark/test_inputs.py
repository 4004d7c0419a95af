"""What a load reads: every compression that Spark reads, paths of several Hadoop file systems, and what it refuses."""

from __future__ import annotations

import bz2
import gzip
import zlib

import pyarrow as pa
import pytest

import penstock
from penstock.errors import DataError, StorageError
from penstock.spark.hadoop import HadoopFiles
from penstock.spark.sources import COMPRESSED, WHOLE_BYTES, format_of
from spark.test_bulk_load import count, equal_look_ups, load

LINES = "".join(f'<http://s/{i}> <http://p/{i % 7}> "the value of number {i}"@en .\n' for i in range(2_000))


def zstd(data):
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as out:
        out.write(data)
    return sink.getvalue().to_pybytes()


PACKED = {".gz": gzip.compress, ".bz2": bz2.compress, ".zst": zstd, ".deflate": zlib.compress}


def written_by_hadoop(spark, ending, folder):
    """The same lines, packed by Hadoop's own codec; its blocks are no other program's."""
    frame = spark.createDataFrame([(LINES.rstrip("\n"),)], "line string").coalesce(1)
    frame.write.option("compression", ending.removeprefix(".")).text(f"{folder}/out")
    (file,) = (folder / "out").glob("*.txt" + ending)
    return file.read_bytes()


@pytest.mark.parametrize("ending", COMPRESSED)
def test_each_compression(spark, tmp_path, ending):
    data = PACKED[ending](LINES.encode()) if ending in PACKED else written_by_hadoop(spark, ending, tmp_path)
    file = tmp_path / f"a.nt{ending}"
    file.write_bytes(data)
    with penstock.Engine() as engine:
        report, bad = load(spark, engine, tmp_path / "load", file)
        assert (report.triples, bad) == (2_000, [])


def test_a_document_of_some_mebibytes_is_read_by_one_task(spark, tmp_path):
    file = tmp_path / "a.ttl"
    file.write_text(
        "@prefix e: <http://e/> .\n" + "".join(f"e:s{i} e:p 'some longer text {i}' .\n" for i in range(180_000))
    )
    assert 6 << 20 < file.stat().st_size < WHOLE_BYTES
    with penstock.Engine() as engine:
        assert load(spark, engine, tmp_path / "load", file)[0].triples == 180_000


def test_a_packed_file_that_breaks_off_fails_the_load_and_leaves_nothing(spark, tmp_path):
    file = tmp_path / "a.nt.gz"
    file.write_bytes(gzip.compress(LINES.encode())[:-2_000])
    with penstock.Engine() as engine:
        with pytest.raises((DataError, StorageError), match=r"a\.nt\.gz"):
            load(spark, engine, tmp_path / "load", file)
        assert count(engine) == 0


def test_folders_globs_and_addresses_with_a_scheme(spark, tmp_path):
    for i, name in enumerate(("in/a.nt", "in/b.nt", "in/deep/c.nt", "more 1/d.nt", "more 2/d.nt")):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"<http://s/{i}> <http://p> <http://o> .\n")
    for place, patterns, expected in (
        (tmp_path, ["in"], 2),  # not the folders within
        (f"file://{tmp_path}", ["in/a.nt", "in/*.nt"], 2),  # each once
        (f"file:{tmp_path}", ["in/a.nt", "in", "{in,more 1}/?.nt"], 3),
        (tmp_path, ["more*/d.nt"], 2),
    ):
        with penstock.Engine() as engine:
            load(spark, engine, tmp_path / "load", *(f"{place}/{pattern}" for pattern in patterns))
            assert count(engine) == expected, (place, patterns)


def test_files_and_staging_of_a_file_system_that_is_not_the_machines_own(spark, tmp_path):
    """Hadoop's viewfs: a file system of another scheme, whose files the driver cannot open by their path."""
    (tmp_path / "mounted" / "in").mkdir(parents=True)
    (tmp_path / "mounted" / "in" / "a.nt").write_text(LINES)
    (tmp_path / "mounted" / "in" / "b.ttl").write_text("@prefix : <http://ex.org/> . :a :b 'some longer text', _:c .")
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.mounttable.penstock.link./data", f"file://{tmp_path}/mounted")
    with penstock.Engine(shards=2) as ours, penstock.Engine() as plain:
        for name in ("a.nt", "b.ttl"):
            plain.load(tmp_path / "mounted" / "in" / name)
        files, staging = "viewfs://penstock/data/in", "viewfs://penstock/data/staging"
        report, bad = load(spark, ours, tmp_path / "load", files, staging=staging)
        assert (report.triples, bad) == (2_002, [])
        equal_look_ups(ours, plain, seed=4)
    assert not (tmp_path / "mounted" / "staging").exists()
    assert not list((tmp_path / "load").glob("*.parquet.crc"))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("s3a://bucket/x.nt", r"s3a://bucket/x\.nt: .*S3AFileSystem.*jars.*spark\.jars"),
        ("nothing://x/y.nt", r"nothing://x/y\.nt: .*No FileSystem for scheme.*spark\.jars"),
        ("har:///x.nt", r"har:///x\.nt: .*Har"),
        ("hdfs://no-such-host.invalid:1/x.nt", r"hdfs://no-such-host.*no-such-host"),
    ],
)
def test_an_unknown_file_system_is_reported(spark, path, message):
    with pytest.raises(StorageError, match=message):
        HadoopFiles(spark).matching(path)


def test_a_state_file_survives_a_crash_while_it_is_replaced(spark, tmp_path):
    files, name = HadoopFiles(spark), str(tmp_path / "load.json")
    assert files.read_state(name) is None
    files.write_state(name, b"1")
    files.write_state(name, b"2")
    assert files.read_state(name) == b"2"
    (tmp_path / "load.json").rename(tmp_path / "load.json.old")  # a write ends here
    assert files.read_state(name) == b"2"
    files.write_state(name, b"3")
    assert files.read_state(name) == b"3"
    assert not [path for path in tmp_path.iterdir() if path.name.endswith((".old", ".new"))]


def test_a_name_without_a_format_is_reported():
    with pytest.raises(DataError, match=r"a\.dat"):
        format_of("a.dat.gz")
