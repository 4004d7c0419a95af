"""The dispatcher's process. One is active; another one that is started takes over, and the older ends, fenced."""

from __future__ import annotations

import sys

from pydantic import Field

from penstock.ingest.dispatcher import ADAPTOR_GROUP, Dispatcher
from penstock.runtime import Context, ServiceSettings, run


class DispatcherSettings(ServiceSettings):
    """Settings of the dispatcher."""

    adaptor_group: str = Field(ADAPTOR_GROUP, min_length=1, description="consumer group of the adaptors")
    poll_ms: int = Field(10, ge=1, le=10_000, description="how long a step waits for input")


def open_dispatcher(context: Context[DispatcherSettings]) -> Dispatcher:
    """Open the core: from here on this instance is the active one."""
    settings = context.settings
    return Dispatcher(context.log, context.names, settings.shards, context.clock, settings.adaptor_group)


def main() -> int:
    """Run the service."""
    return run("dispatcher", DispatcherSettings, open_dispatcher)


if __name__ == "__main__":
    sys.exit(main())
