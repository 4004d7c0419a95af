"""Errors about times say where seconds were probably given for milliseconds."""

import pytest

import penstock


def test_a_leap_from_seconds_to_milliseconds_is_explained(make_bench):
    bench = make_bench()
    bench.declare("s")
    bench.register("?s ?p ?o", "s RANGE 1s STEP 1s")
    bench.advance("s", 1_700_000_000)
    with pytest.raises(penstock.LimitError, match=r"max_catch_up.*; 1700000000 looks like seconds"):
        bench.advance("s", 1_700_000_000_000)


def test_a_time_in_microseconds_is_explained(make_bench):
    bench = make_bench()
    bench.declare("s")
    bench.advance("s", 1_700_000_000_000)
    with pytest.raises(penstock.DataError, match=r"max_ahead_ms.*1790000000000000 looks like microseconds"):
        bench.push("s", 1_790_000_000_000_000, "a p b")


def test_an_ordinary_leap_has_no_hint(make_bench):
    bench = make_bench()
    bench.declare("s", batch_ms=1)
    bench.register("?s ?p ?o", "s RANGE 1ms STEP 1ms")
    bench.advance("s", 0)
    with pytest.raises(penstock.LimitError) as caught:
        bench.advance("s", 2_000_000)
    assert "looks like" not in str(caught.value)
