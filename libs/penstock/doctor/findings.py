"""The findings of `penstock doctor`: result, level and remedy of each check."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    """How serious a finding is."""

    ok = "ok"
    """The check passed."""
    skipped = "skipped"
    """The check does not apply, or a requirement of the check is missing. The text gives the reason."""
    warning = "warning"
    """Services run now, but can fail or lose data later."""
    failure = "failure"
    """Services cannot run, or lose their guarantees."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check. `remedy`: the action that corrects a warning or failure."""

    check: str
    level: Level
    text: str
    remedy: str = ""


def ok(check: str, text: str) -> Finding:
    """Return the finding of a check that passed."""
    return Finding(check, Level.ok, text)


def skipped(check: str, text: str) -> Finding:
    """Return the finding of a check that does not apply or could not run."""
    return Finding(check, Level.skipped, text)


def warning(check: str, text: str, remedy: str) -> Finding:
    """Return the finding of a check that has found a possible problem, with a remedy."""
    return Finding(check, Level.warning, text, remedy)


def failure(check: str, text: str, remedy: str) -> Finding:
    """Return the finding of a check that has failed, with a remedy."""
    return Finding(check, Level.failure, text, remedy)
