"""Paths: names, indexes, wildcards; what is refused, and where."""

from __future__ import annotations

import pytest

from penstock import DataError
from penstock.mapping.json_path import all_values, is_single, parse_path, single_value

VALUE = {"a": {"b": [1, {"c": 2}, {"c": 3}]}, "x y": "s", "it's": 4, "ü": 5, "n": None}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("$", [VALUE]),
        ("$.a.b[0]", [1]),
        ("$.a.b[-1].c", [3]),
        ("$.a.b[7]", []),
        ("$['x y']", ["s"]),
        ('$["x y"]', ["s"]),
        ("$['it\\'s']", [4]),
        ("$['\\u00fc']", [5]),
        ("$.ü", [5]),
        ("a.b[0]", [1]),
        ("x y", ["s"]),
        ("$.a.b[*].c", [2, 3]),
        ("$.a.*[1].c", [2]),
        ("$.none.b", []),
        ("$.a[0]", []),
        ("$.a.b.c", []),
    ],
)
def test_a_path_finds_its_values(text, found):
    path = parse_path(text)
    assert all_values(path, 100)(VALUE) == found
    if is_single(path):
        assert single_value(path)(VALUE) == (found[0] if found else None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at character 1"),
        ("$.", "the end at character 3"),
        ("$.a[", "the end at character 5"),
        ("$.a]", "']' at character 4"),
        ("$..a", "search"),
        ("$.a[?(@.b)]", "filter"),
        ("$.a[1:2]", "':' at character 6"),
        ("$['a", "at character 3"),
        ("$.a b", "' ' at character 4"),
        ("$[01]", "at character 4"),
        ("$" + "[0]" * 200, "more than 128 steps"),
    ],
)
def test_an_invalid_path_is_an_error_with_its_position(text, message):
    with pytest.raises(DataError) as error:
        parse_path(text)
    assert message in str(error.value)


def test_the_number_of_values_is_limited():
    values = all_values(parse_path("$[*][*]"), 100)
    assert len(values([[0] * 10] * 10)) == 100
    with pytest.raises(DataError, match="max_values"):
        values([[0] * 11] * 10)
