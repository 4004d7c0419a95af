"""The native executor of mappings, compared with the one in Python: random mappings, random and damaged messages."""

from __future__ import annotations

from collections import Counter
from itertools import chain
from random import Random

import pytest

from penstock import DataError
from penstock.core._native import Dictionary, parse_nquads
from penstock.mapping.message_records import SourceMessage
from penstock.mapping.stream_mapping import StreamMapping
from support import random_mappings

CASES = 2_000  # mappings; each gets 6 messages


@pytest.mark.parametrize("part", range(4))
def test_both_executors_make_the_same_events(part):
    counts: Counter[str] = Counter()
    for seed in range(part, CASES, 4):
        compare(Random(seed), counts)
    assert counts["mappings"] > CASES // 8
    assert counts["mapped"] > CASES // 8
    # The native executor declines few messages that can be mapped: wildcards over objects, surrogates, rare numbers.
    assert counts["declined, but mapped"] < counts["mapped"] // 5, counts


def compare(random, counts):
    settings = random_mappings.mapping(random)
    try:
        compiled = StreamMapping(settings)
    except DataError:
        counts["invalid mappings"] += 1
        return
    counts["mappings"] += 1
    messages = [(1000 + i, random_mappings.message(random, compiled.format)) for i in range(6)]
    batch = compiled.batch(messages, 1 << 20)
    assert batch is not None
    dictionary = Dictionary()
    columns = [column.tolist() for column in batch.intern(dictionary)]
    owners, ends = batch.messages.tolist(), batch.counts.cumsum().tolist()
    for place, (time, data) in enumerate(messages):
        where = f"{settings} {data!r}"
        expected = interpreted(compiled, SourceMessage(data, time))
        if expected is None:
            assert place in batch.declined, where
            counts["rejected"] += 1
            continue
        if place in batch.declined:
            counts["declined, but mapped"] += 1
            continue
        counts["mapped"] += 1
        events = [i for i, owner in enumerate(owners) if owner == place]
        assert [batch.times[i] for i in events] == [event.time_ms for event in expected], where
        for i, event in zip(events, expected, strict=True):
            scopes: list[dict[str, int]] = [{}, {}]
            written = parse_nquads(dictionary, batch.ntriples(i), scope=scopes[0])
            expected_quads = parse_nquads(dictionary, event.triples, scope=scopes[1])
            assert scopes[0].keys() == scopes[1].keys(), where
            own = [column[ends[i] - int(batch.counts[i]) : ends[i]] for column in columns]
            assert named(expected_quads, scopes[1]) == named(written, scopes[0]), where
            labels = dict(zip(chain(*own), chain(*lists(expected_quads)), strict=True))
            assert [[labels[term] for term in column] for column in own] == lists(expected_quads), where
            assert len(set(labels.values())) == len(labels), where
            blanks = set(scopes[1].values())
            assert all(own_id == term or term in blanks for own_id, term in labels.items()), where


def interpreted(compiled, message):
    try:
        return compiled.interpreted(message)
    except DataError:
        return None


def lists(quads):
    return [quads.subjects.tolist(), quads.predicates.tolist(), quads.objects.tolist()]


def named(quads, scope):
    labels = {term: label for label, term in scope.items()}
    return [[labels.get(term, term) for term in column] for column in lists(quads)]
