"""What every data plane does, whatever carries it."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import numpy as np
import pytest

from penstock.errors import DataError, DataPlaneError
from support.plane_regions import Node, expected, read

from .conftest import NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.core import _native as native

    Open = Callable[..., native.Plane]

WORDS = 100_000


def random_reads(seed: int, count: int, most_words: int, regions: int = 2) -> list[tuple[int, int, int]]:
    choose = random.Random(seed)
    reads = []
    for _ in range(count):
        length = choose.randint(1, most_words)
        reads.append((choose.randrange(regions), choose.randint(0, WORDS - length), length))
    return reads


@pytest.mark.parametrize(("count", "most_words"), [(1, 1), (5_000, 1), (3_000, 16), (300, 2_000), (8, WORDS)])
def test_a_batch_brings_the_bytes_of_every_read(node: Node, open_plane: Open, count: int, most_words: int) -> None:
    node.add(WORDS)
    node.add(WORDS)
    plane = open_plane()
    reads = random_reads(most_words, count, most_words)
    assert np.array_equal(read(plane, NODE, reads), expected(reads))


def test_an_empty_batch_is_done_at_once(node: Node, open_plane: Open) -> None:
    empty = np.array([], dtype=np.uint32)
    assert len(open_plane().read(NODE, empty, empty.astype(np.uint64), empty)) == 0


def test_the_directory_tells_what_is_published(node: Node, open_plane: Open) -> None:
    node.add(WORDS)
    node.add(10)
    plane = open_plane()
    entries = sorted(plane.directory(NODE), key=lambda entry: entry.number)
    assert [(e.node, e.number, e.kind, e.epoch, e.bytes) for e in entries] == [
        (NODE, 0, 2, 0, 8 * WORDS),
        (NODE, 1, 2, 1, 80),
    ]
    assert entries[0].path == str(node.path(0))
    assert entries[0].reserve_bytes == 1 << 28


def test_a_region_grows_while_it_is_read(node: Node, open_plane: Open) -> None:
    node.add(WORDS)
    plane = open_plane()
    for step in range(5):
        start = WORDS + step * 1_000
        node.grow(0, start, 1_000)
        assert np.array_equal(read(plane, NODE, [(0, start - 10, 1_010)]), expected([(0, start - 10, 1_010)]))


def test_what_is_published_later_is_found_by_asking_again(node: Node, open_plane: Open) -> None:
    plane = open_plane()
    node.add(100)
    with pytest.raises(DataPlaneError) as caught:
        read(plane, NODE, [(0, 0, 1)])
    assert caught.value.fault == "retired"
    plane.directory(NODE)
    assert np.array_equal(read(plane, NODE, [(0, 0, 100)]), expected([(0, 0, 100)]))


@pytest.mark.parametrize("offset", [8 * WORDS, 8 * WORDS - 8, 1 << 40, (1 << 64) - 8])
def test_a_read_beyond_the_end_fails_and_the_next_one_works(node: Node, open_plane: Open, offset: int) -> None:
    node.add(WORDS)
    plane = open_plane()
    region, offsets, length = (
        np.array([0], dtype=np.uint32),
        np.array([offset], dtype=np.uint64),
        np.array([16], dtype=np.uint32),
    )
    with pytest.raises(DataPlaneError) as caught:
        plane.read(NODE, region, offsets, length)
    assert caught.value.fault == "out of range"
    assert np.array_equal(read(plane, NODE, [(0, 0, 5)]), expected([(0, 0, 5)]))


@pytest.mark.parametrize(("offset", "length"), [(4, 8), (0, 12), (0, 0), (0, (1 << 26) + 8)])
def test_reads_are_of_whole_words_and_of_limited_length(open_plane: Open, offset: int, length: int) -> None:
    with pytest.raises(DataPlaneError) as caught:
        open_plane().read(
            NODE,
            np.array([0], dtype=np.uint32),
            np.array([offset], dtype=np.uint64),
            np.array([length], dtype=np.uint32),
        )
    assert caught.value.fault == "out of range"


def test_columns_have_one_length(open_plane: Open) -> None:
    with pytest.raises(DataError):
        open_plane().read(NODE, np.zeros(2, np.uint32), np.zeros(1, np.uint64), np.full(2, 8, np.uint32))


def test_a_withdrawn_region_is_retired_once_the_directory_says_so(node: Node, open_plane: Open) -> None:
    node.add(WORDS)
    node.add(WORDS)
    plane = open_plane()
    read(plane, NODE, [(1, 0, 8)])
    node.server.withdraw(1)
    assert [entry.number for entry in plane.directory(NODE)] == [0]
    with pytest.raises(DataPlaneError) as caught:
        read(plane, NODE, [(0, 0, 8), (1, 0, 8)])
    assert caught.value.fault == "retired"
    reads = random_reads(1, 100, 100, regions=1)
    assert np.array_equal(read(plane, NODE, reads), expected(reads))


def test_a_withdrawn_region_is_retired_for_who_still_has_its_number(
    node: Node, open_plane: Open, transport: str
) -> None:
    if transport == "shm":
        pytest.skip("what is mapped stays readable: its header tells that it is retired")
    node.add(WORDS)
    node.add(WORDS)
    plane = open_plane()
    read(plane, NODE, [(1, 0, 8)])
    node.server.withdraw(1)
    with pytest.raises(DataPlaneError) as caught:
        read(plane, NODE, [(0, 0, 8), (1, 0, 8)])
    assert caught.value.fault == "retired"
    assert [entry.number for entry in plane.directory(NODE)] == [0]
    assert np.array_equal(read(plane, NODE, [(0, 0, 8)]), expected([(0, 0, 8)]))


def test_regions_whose_pages_may_move_are_read_as_well(node: Node, open_plane: Open) -> None:
    node.add(WORDS)
    node.add(WORDS, stable=False)
    reads = random_reads(7, 1_000, 100)
    assert np.array_equal(read(open_plane(), NODE, reads), expected(reads))


def test_who_does_not_hold_the_secret_is_refused(node: Node, open_plane: Open) -> None:
    with pytest.raises(DataPlaneError) as caught:
        open_plane(secret=b"another secret, as long as needed")
    assert caught.value.fault == "refused"
    assert node.server.counters()["reads"] == 0


def test_a_node_that_is_gone_is_an_error_of_the_read(node: Node, open_plane: Open) -> None:
    plane = open_plane()
    del node.server
    with pytest.raises(DataPlaneError) as caught:
        plane.directory(NODE)
    assert caught.value.fault == "disconnected"
