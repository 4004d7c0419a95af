"""Settings shared by the cluster's services."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.log import TransientError
from penstock.log.topics import TopicNames
from penstock.replication.cluster_topics import ClusterTopics
from penstock.runtime import Context, ServiceSettings
from penstock.runtime.settings import SettingsError

if TYPE_CHECKING:
    from pathlib import Path
    from typing import TypeVar

    S = TypeVar("S", bound="ClusterSettings")

_TRIES, _PAUSE_S = 20, 0.5
_MIN_SECRET_BYTES = 16


class ClusterSettings(ServiceSettings):
    """Settings of every service that uses the cluster's topics."""

    buckets: int = Field(
        8,
        ge=1,
        le=1024,
        description="shares of the standing queries; all services use the same number, and it never changes",
    )


class GroupSettings(ServiceSettings):
    """Settings of services that use the adaptors' consumer group."""

    adaptor_group: str | None = Field(
        None,
        min_length=1,
        description="consumer group of the adaptors, the same for dispatcher and adaptors; none = `<prefix>.adaptor`",
    )

    @property
    def group(self) -> str:
        """The effective consumer group."""
        return self.adaptor_group or TopicNames(self.prefix).adaptor_group


class ClientSettings(ClusterSettings):
    """Settings of services that use the dictionary."""

    dictionaries: str = Field(
        min_length=1, description="addresses of the dictionaries: grpc://host:port, separated by commas"
    )


def topics_of(context: Context[S]) -> ClusterTopics:
    """Return the cluster's topics. Creates those that do not exist. SettingsError if their numbers of partitions differ
    from the settings.
    """
    topics = ClusterTopics(context.names, context.settings.shards, context.settings.buckets)
    for attempt in range(_TRIES):
        try:
            context.log.create(topics.all())
            break
        except TransientError:
            if attempt + 1 == _TRIES:
                raise
            time.sleep(_PAUSE_S)
    _check_shape(context, topics)
    return topics


def _check_shape(context: Context[S], topics: ClusterTopics) -> None:
    """Raise SettingsError if a topic's partition count differs from the settings. The count of an existing cluster
    never changes.
    """
    there = context.log.topics()
    fixed = {topics.names.shards: ("SHARDS", topics.shards), topics.progress: ("BUCKETS", topics.buckets)}
    for name, (setting, count) in fixed.items():
        if there.get(name, count) != count:
            raise SettingsError(f"PENSTOCK_{setting} is {count}, but topic {name} has {there[name]} partitions")


def read_secret(path: Path) -> bytes:
    """Return the secret in a file, without white space around it. SettingsError if it is not a valid secret."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"PENSTOCK_SECRET_FILE: {error}") from error
    if len(secret) < _MIN_SECRET_BYTES:
        raise SettingsError(f"PENSTOCK_SECRET_FILE: {path} has less than {_MIN_SECRET_BYTES} bytes")
    return secret
