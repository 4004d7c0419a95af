"""Prepared loads: what they must be made for, and handing them over (`penstock load --spark --cluster` does both)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from penstock.client.asking import Question, ask, urls

if TYPE_CHECKING:
    from penstock.replication.load_files import Manifest


@dataclass(frozen=True, slots=True)
class LoadTarget:
    """What of a cluster a load depends on: its number of shards, where the dictionaries are that number its terms."""

    shards: int
    dictionaries: tuple[str, ...]


class Loading:
    """A cluster's coordinators (`url`, by comma), as far as loads concern them. TransientError where none answers."""

    def __init__(self, url: str) -> None:
        self._coordinators = urls(url)

    def target(self) -> LoadTarget:
        """Return what a load must be prepared for."""
        found = json.loads(self._ask(Question("GET", "/loads")))
        return LoadTarget(int(found["shards"]), tuple(found["dictionaries"]))

    def store(self, manifest: Manifest) -> int:
        """Have a prepared load stored, as one snapshot; returns its triples. DataError where it cannot be.

        Its files stay as long as the log that names them: who reads the log from before it reads them again.
        """
        return int(json.loads(self._ask(Question("POST", "/loads", manifest.to_json(), "application/json")))["triples"])

    def _ask(self, question: Question) -> bytes:
        return ask(lambda: self._coordinators, question)
