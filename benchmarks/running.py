"""Runs a benchmark by its module's name, in this process or in a new one."""

from __future__ import annotations

import importlib
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.harness import Finding


def findings(module: str, *, tiny: bool) -> Iterator[Finding]:
    """Yield the findings of a benchmark, as they come."""
    yield from importlib.import_module(f"benchmarks.{module}").run(tiny=tiny)


def findings_apart(module: str, *, tiny: bool) -> list[Finding]:
    """Return the findings of a benchmark from a new process: a JVM keeps the jars and the compiler that it started
    with.
    """
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as process:
        return process.submit(_listed, module, tiny).result()


def _listed(module: str, tiny: bool) -> list[Finding]:
    return list(findings(module, tiny=tiny))
