"""The plain adaptor's process: users' events to tuples of term ids."""

from __future__ import annotations

import sys

from pydantic import Field

from penstock.cluster.rpc import FlightTerms
from penstock.ingest.adaptor import Adaptor
from penstock.ingest.dispatcher import ADAPTOR_GROUP
from penstock.runtime import Context, ServiceSettings, run


class AdaptorSettings(ServiceSettings):
    """Settings of an adaptor."""

    adaptor_group: str = Field(ADAPTOR_GROUP, min_length=1, description="consumer group of the adaptors")
    dictionaries: str = Field(min_length=1, description="where dictionaries answer: grpc://host:port, by commas")
    poll_ms: int = Field(10, ge=1, le=10_000, description="how long a step waits for input")


def open_adaptor(context: Context[AdaptorSettings]) -> Adaptor:
    """Open the core: one member of the adaptors' group."""
    terms = FlightTerms(context.settings.dictionaries.split(","))
    return Adaptor(context.log, context.names, terms, context.settings.adaptor_group)


def main() -> int:
    """Run the service."""
    return run("adaptor", AdaptorSettings, open_adaptor)


if __name__ == "__main__":
    sys.exit(main())
