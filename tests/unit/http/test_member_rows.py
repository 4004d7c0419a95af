"""Members in request bodies: a small body cannot take much memory, and damaged ones are errors."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest

from penstock.engine.sets.tables import as_table
from penstock.errors import DataError
from penstock.http.member_rows import ARROW, rows_of


def stream_of(table: pa.Table, **options) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


USERS = pa.table({"user": ["urn:a", "urn:b"], "limit": [1, 2]})
ZEROS = pa.table({"user": np.zeros(20_000_000, np.int64)})


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_a_compressed_batch_is_refused_before_it_is_decompressed(codec):
    body = stream_of(ZEROS, compression=codec)
    assert len(body) < ZEROS.nbytes / 100
    before = pa.total_allocated_bytes()
    with pytest.raises(DataError, match="compressed record batches are not accepted"):
        rows_of(body, ARROW, ["user"])
    assert pa.total_allocated_bytes() == before


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pa.array(["x" * 1000]).take(pa.array([0] * 10)).dictionary_encode(), "dictionary-encoded columns"),
        (pa.RunEndEncodedArray.from_arrays([2**31 - 1], ["x" * 1000]), "type run_end_encoded"),
        (pa.array(["a view of any length"] * 10, pa.string_view()), "type string_view"),
        (pa.array([[1]]), "type list"),
    ],
    ids=["dictionary", "run-end", "view", "list"],
)
def test_types_that_repeat_values_are_refused(column, message):
    with pytest.raises(DataError, match=message):
        rows_of(stream_of(pa.table({"user": column})), ARROW, ["user"])


def test_other_columns_may_have_any_plain_type():
    table = USERS.append_column("more", pa.array([[1], [2]]))
    assert rows_of(stream_of(table), ARROW, ["user", "limit"]).select(["user", "limit"]) == USERS


def test_a_damaged_stream_is_an_error_or_valid_rows():
    """Bytes of a valid stream are changed at random, in a process of its own: Arrow must not end it."""
    code = f"""
from random import Random
from penstock.errors import DataError
from penstock.engine.sets.tables import as_table
from penstock.http.member_rows import ARROW, rows_of
body, random = {stream_of(USERS)!r}, Random(1)
for _ in range(1000):
    damaged = bytearray(body)
    for _ in range(random.choice([1, 1, 2, 8])):
        damaged[random.randrange(len(damaged))] = random.randrange(256)
    if random.random() < 0.2:
        damaged = damaged[: random.randrange(len(damaged))]
    try:
        as_table(rows_of(bytes(damaged), ARROW, ["user", "limit"]), ["user", "limit"]).to_pylist()
    except DataError:
        pass
print("survived")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.stdout == "survived\n", done.stderr[-2000:]


def test_a_wide_csv_header_takes_no_memory_per_column():
    body = b"a," * 100_000 + b"user\n" + b"1," * 100_000 + b"urn:a\n"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert rows_of(body, "text/csv", ["user"]) == pa.table({"user": ["urn:a"]})
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB; all columns: 1 GB


def test_a_missing_column_of_a_csv_is_named():
    with pytest.raises(DataError, match="the columns user: one is missing"):
        rows_of(b"a\n1\n", "text/csv", ["user"])


def test_rows_of_json_have_the_cells_that_are_read():
    rows = rows_of(b'{"user": "urn:a", "more": [1]}\n\n{"limit": 2}', "", ["user", "limit"])
    assert rows == [("urn:a", None), (None, 2)]
    assert as_table(rows, ["user", "limit"]).to_pylist() == [
        {"user": "urn:a", "limit": None},
        {"user": None, "limit": 2},
    ]
