"""The dictionary's process. Of several, one is active and answers; the others wait."""

from __future__ import annotations

import sys

from pydantic import Field

from penstock.cluster.dictionary_node import DictionaryNode
from penstock.runtime import Context, run
from penstock.services.cluster_settings import ClusterSettings, topics_of


class DictionarySettings(ClusterSettings):
    """Settings of a dictionary."""

    listen: str = Field("127.0.0.1:0", description="host:port where look-ups are answered; port 0 = any")


def open_dictionary(context: Context[DictionarySettings]) -> DictionaryNode:
    """Open the core: on standby until it is elected."""
    settings = context.settings
    node = DictionaryNode(
        context.log, topics_of(context), settings.instance, f"grpc://{settings.listen}", context.clock
    )
    context.observers.append(lambda: context.metrics.active.set(node.active))
    context.logger.info("answering", port=node.port)
    return node


def main() -> int:
    """Run the service."""
    return run("dictionary", DictionarySettings, open_dictionary)


if __name__ == "__main__":
    sys.exit(main())
