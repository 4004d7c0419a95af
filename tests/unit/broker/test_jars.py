"""The locked list of jars."""

from __future__ import annotations

from penstock.broker.jars import Jar, locked


def test_each_jar_is_locked_once_with_a_digest() -> None:
    jars = locked()
    assert len({(jar.group, jar.artifact) for jar in jars}) == len(jars) == 44
    assert all(len(jar.sha256) == 64 for jar in jars)


def test_a_file_with_another_digest_is_not_taken(tmp_path) -> None:
    jar = Jar("g", "a", "1", "0" * 64)
    assert not jar.is_in(tmp_path)
    (tmp_path / "a-1.jar").write_bytes(b"something else")
    assert not jar.is_in(tmp_path)
