"""The dictionary's process. One instance is active; the others are on standby."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - pydantic reads it

from pydantic import Field

from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClusterSettings, topics_of
from penstock.services.dictionary.dictionary_instance import DictionaryNode
from penstock.services.dictionary.flight_gate import GateLimits


class DictionarySettings(ClusterSettings):
    """Settings of a dictionary."""

    data_dir: Path | None = Field(None, description="folder of the snapshots; none = each start reads the topic")
    checkpoint_s: float = Field(60.0, gt=0, description="seconds between snapshots")
    listen: str = Field("127.0.0.1:0", description="host:port that answers look-ups; port 0 = any free port")
    max_message_mb: int = Field(96, ge=72, le=2_047, description="MiB of one request (`max_message_bytes`)")


class SnapshotDictionary:
    """A dictionary instance and its snapshot directory."""

    def __init__(self, context: Context[DictionarySettings]) -> None:
        settings, topics = context.settings, topics_of(context)
        location = f"grpc://{settings.listen}"
        self._directory = None if settings.data_dir is None else DataDirectory(settings.data_dir, read_only=False)
        self.node = DictionaryNode(
            context.log,
            topics,
            settings.instance,
            location,
            context.clock,
            self._directory,
            settings.checkpoint_s,
            limits=GateLimits.of_messages(settings.max_message_mb << 20),
        )

    def step(self, timeout_s: float) -> bool:
        """Perform one step of the instance. Returns whether it read new terms."""
        return self.node.step(timeout_s)

    def close(self) -> None:
        """Close the instance. The dictionary topic still has the terms that no snapshot contains."""
        self.node.close()
        if self._directory is not None:
            self._directory.close(clean=True)


def open_dictionary(context: Context[DictionarySettings]) -> SnapshotDictionary:
    """Open the dictionary, on standby until it is elected."""
    made = SnapshotDictionary(context)
    context.observers.append(lambda: context.metrics.active.set(made.node.active))
    context.observers.append(lambda: context.metrics.memory.labels("terms").set(made.node.bytes))
    context.health.check("snapshot", lambda: made.node.unsaved)
    context.logger.info("answering", port=made.node.port)
    return made


def main() -> int:
    """Run the service."""
    return run("dictionary", DictionarySettings, open_dictionary)


if __name__ == "__main__":
    sys.exit(main())
