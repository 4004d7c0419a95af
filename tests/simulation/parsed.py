"""Parsing once: instances that come and go parse the same texts again and again, a third of a seed's time."""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache
from unittest.mock import patch

from penstock.engine.oneshot import texts
from penstock.query.parser import parse
from penstock.services.coordinator import registrar

_cached = lru_cache(maxsize=256)(parse)  # its results are immutable; errors are not cached


def parsing_once() -> ExitStack:
    """Let everybody share what was parsed, until the stack is closed."""
    stack = ExitStack()
    for module in (registrar, texts):
        stack.enter_context(patch.object(module, "parse", _cached))
    return stack
