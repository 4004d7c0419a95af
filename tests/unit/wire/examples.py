"""One example of every record, as `python -m unit.wire.examples FOLDER` keeps them for readers to come."""

from __future__ import annotations

import numpy as np

from penstock import wire

IDS = np.array([1, 2**63 + 5, 2**64 - 1], np.uint64)
NUMBERS = np.array([-(2**62), 0, 1_700_000_000_000], np.int64)
NONE = np.empty(0, np.uint64)
FLAGS = np.array([1, 0, 1], np.uint8)

EXAMPLES: tuple = (
    wire.Tuples("http://x/posts", 2, NUMBERS, NUMBERS, np.array([1, 0, 2]), IDS, IDS, IDS, 1999, removed=FLAGS),
    wire.ShardBatch(
        "http://x/posts", -3, 7, np.array([0, 4, 9], np.uint32), NUMBERS, IDS, IDS, IDS, 700, removed=FLAGS
    ),
    wire.DispatcherState("http://x/posts", 1, *([NUMBERS] * 8), 1999, 18, None, True),
    wire.ShardInsertion(4, 0, 1, IDS, IDS, IDS, NONE),
    wire.ShardRemoval(4, 0, 2, IDS, IDS, IDS, NONE),
    wire.ShardLoad(5, 7, 2, "file:///loads/a", NONE, IDS, ("b", "c"), ("00", "ff"), NUMBERS, NUMBERS),
    wire.DictionaryEntry(-5, 3, "grün", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "de-AT"),
    wire.DictionaryState(17, 23, 4),
    wire.StreamDeclaration(
        2, "http://x/j", "j", 100, 0, True, (), 0, 10_000, 86_400_000, mapping='{"context": {"@vocab": "http://x/"}}'
    ),
    wire.StreamDeclaration(1, "http://x/posts", "posts", 100, 0, False, ("http://x/gps",), 0, 10_000, 86_400_000, None),
    wire.StreamPredicates("http://x/posts", 4, ("http://x/p", "http://x/q"), np.array([1, 4]), None, 3),
    wire.StreamEnd("http://x/derived", 5),
    wire.StreamDrop(2, "http://x/posts"),
    wire.QueryRegistration(3, "q", "REGISTER QUERY q AS SELECT *", 3, ("http://x/posts",), "http://x/", "own.topic"),
    wire.QueryRegistration(
        3, "near", "REGISTER QUERY", 3, ("http://x/s",), report="change", key=("user", "place"), parts=3
    ),
    wire.QueryStop(4, "q"),
    wire.Heartbeat("store", "a", "a-1", 12, "http://localhost:1", (0, 2), {"http://x/posts": 7}),
    wire.Placement(9, {"0": "a"}, {"0": "b", "1": "b"}),
    wire.CoordinatorState(9, 12, 3, {"penstock.queries": 17}),
    wire.NamedGraph("http://x/g"),
    wire.InsertionDone(7, "f1c5", 2),
    wire.ProgressPart(3, 1, 2, b"\x00\xff", 4),
    wire.BucketProgress(1, 9, 12),
    wire.GroupProgress(3, 4000, {"http://x/posts": 1000}),
)
