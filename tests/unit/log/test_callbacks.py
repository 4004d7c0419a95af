"""Errors in librdkafka's callbacks reach the caller as they are, not as Python's SystemError."""

from __future__ import annotations

import pytest

from penstock.log.kafka.callbacks import unmasked


def masked(first: BaseException) -> SystemError:
    """What Python makes of an exception that two further callbacks were called with."""
    error = first
    for _ in range(2):
        outer = SystemError("<callback> returned a result with an exception set")
        outer.__cause__ = error
        error = outer
    return error


@pytest.mark.parametrize("first", [ValueError("fatal"), KeyboardInterrupt()])
def test_the_first_callbacks_exception_is_raised(first):
    with pytest.raises(type(first)) as found, unmasked():
        raise masked(first)
    assert found.value is first


def test_other_errors_are_raised_as_they_are():
    with pytest.raises(SystemError, match="another"), unmasked():
        raise SystemError("another")
    with pytest.raises(ValueError, match="plain"), unmasked():
        raise ValueError("plain")
