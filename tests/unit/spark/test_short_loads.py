"""A load is short where that is known without Spark: plain local files that are small together."""

from __future__ import annotations

from penstock.cli.local import spark_load


def test_small_plain_files_make_a_short_load(tmp_path, monkeypatch):
    small, packed = tmp_path / "a.nt", tmp_path / "a.nt.gz"
    small.write_bytes(b"x" * 100)
    packed.write_bytes(b"x")
    assert spark_load.is_short([str(small)])
    assert not spark_load.is_short([str(small), str(packed)])
    assert not spark_load.is_short([str(tmp_path)])
    assert not spark_load.is_short(["hdfs:///input/a.nt"])
    monkeypatch.setattr(spark_load, "_SHORT_BYTES", 150)
    assert spark_load.is_short([str(small)])
    assert not spark_load.is_short([str(small), str(small)])
