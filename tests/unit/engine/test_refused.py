"""Outputs of what was refused are bounded, and count what they lose."""

from __future__ import annotations

from penstock.engine.intake.rejected_events import DeadLetter, Output


def letter(data: bytes) -> DeadLetter:
    return DeadLetter("urn:x:s", 1, "because", data)


def test_entries_come_out_in_order_and_once():
    output = Output(10, 1000)
    for data in (b"a", b"b"):
        output.put(letter(data))
    assert [entry.data for entry in output.take()] == [b"a", b"b"]
    assert output.take() == []
    assert (output.total, output.lost) == (2, 0)


def test_too_many_entries_push_out_the_oldest():
    output = Output(2, 1000)
    for i in range(5):
        output.put(letter(b"%d" % i))
    assert [entry.data for entry in output.take()] == [b"3", b"4"]
    assert (output.total, output.lost) == (5, 3)


def test_too_many_bytes_push_out_the_oldest():
    output = Output(100, 10)
    output.put(letter(b"123456"))
    output.put(letter(b"12345"))
    assert [entry.data for entry in output.take()] == [b"12345"]
    output.put(letter(b"x" * 11))
    assert output.take() == []
    assert output.lost == 2
