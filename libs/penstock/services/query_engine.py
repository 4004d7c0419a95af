"""The query engine's process: evaluates its buckets, checkpoints its replica, answers one-shot queries at /sparql."""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path  # noqa: TC003 - pydantic reads it

from pydantic import Field

from penstock.cluster.checkpoint import ReplicaFactory
from penstock.cluster.query_engine import QueryEngine
from penstock.cluster.rpc import FlightTerms
from penstock.engine.directory import DataDirectory, WorkingDirectory
from penstock.engine.limits import Limits
from penstock.http.sparql import routes
from penstock.runtime import Context, run
from penstock.services.cluster_settings import ClientSettings, topics_of


class QueryEngineSettings(ClientSettings):
    """Settings of a query engine."""

    data_dir: Path | None = Field(None, description="for checkpoints; none = every start reads the whole log")
    checkpoint_s: float = Field(30.0, gt=0, description="seconds between checkpoints")
    poll_ms: int = Field(10, ge=1, le=10_000, description="how long a step waits for input")


class CheckpointedEngine:
    """An engine and its files."""

    def __init__(self, context: Context[QueryEngineSettings]) -> None:
        settings = context.settings
        topics = topics_of(context)
        self._working = WorkingDirectory()
        self._directory = None if settings.data_dir is None else DataDirectory(settings.data_dir, read_only=False)
        terms = FlightTerms(settings.dictionaries.split(","))
        rng = random.Random()  # noqa: S311 - RAND and UUID
        self._factory = ReplicaFactory(
            self._working, self._directory, terms, topics.shards, Limits(), context.clock.now_ms, rng
        )
        self._replica, positions = self._factory.make()
        self.engine = QueryEngine(context.log, topics, settings.instance, self._replica, positions, context.clock)
        self._every_s = settings.checkpoint_s
        self._due = time.monotonic() + self._every_s

    def step(self, timeout_s: float) -> bool:
        """Step, and checkpoint where it is time."""
        worked = self.engine.step(timeout_s)
        if self._directory is not None and time.monotonic() >= self._due:
            self._factory.save(self._replica)
            self._due = time.monotonic() + self._every_s
        return worked

    def close(self) -> None:
        """Let go; what is not checkpointed is in the log."""
        self.engine.close()
        if self._directory is not None:
            self._directory.close(clean=True)
        self._working.close()


def open_engine(context: Context[QueryEngineSettings]) -> CheckpointedEngine:
    """Open the core."""
    made = CheckpointedEngine(context)
    context.routes.extend(routes(made.engine))
    context.health.check("log", lambda: None if made.engine.caught_up() else "behind the end of the log")
    context.observers.append(lambda: context.metrics.active.set(bool(made.engine.buckets)))
    return made


def main() -> int:
    """Run the service."""
    return run("query-engine", QueryEngineSettings, open_engine)


if __name__ == "__main__":
    sys.exit(main())
