"""Settings shared by the cluster's services."""

from __future__ import annotations

import time
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.acls import Cluster, used_topics
from penstock.acls.checking import lacking_operations
from penstock.errors import DataPlaneError, StorageError
from penstock.log import DeniedError, TransientError
from penstock.log.topics import TopicNames
from penstock.remote.tls import PeerTls
from penstock.replication.cluster_topics import ClusterTopics
from penstock.runtime import Context, ServiceSettings
from penstock.runtime.settings import SettingsError
from penstock.term_ids.flight_terms import FlightTerms
from penstock.term_ids.peer_certificates import PeerCertificates

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import TypeVar

    from penstock.acls import Principal
    from penstock.log import Topic

    S = TypeVar("S", bound="ClusterSettings")

_TRIES, _PAUSE_S = 60, 0.5
_QUIET = 20  # tries between two log lines
_MIN_SECRET_BYTES = 16


class ClusterSettings(ServiceSettings):
    """Settings of every service that uses the cluster's topics."""

    buckets: int = Field(
        8,
        ge=1,
        le=1024,
        description="number of buckets of standing queries; the same for all services, and never changed",
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


class PeerSettings(ClusterSettings):
    """Settings of services that authenticate to each other by certificates. These services are dictionaries, clients of
    dictionaries, stores and query engines.
    """

    tls_ca: Path | None = Field(
        None,
        description="CA (PEM) of the certificates of the cluster's processes; none = look-ups and reads without TLS",
    )
    tls_certificate: Path | None = Field(
        None, description="certificate chain (PEM) of this process towards the others; may change while it runs"
    )
    tls_key: Path | None = Field(None, description="private key (PEM) of `tls_certificate`")

    def peer_certificates(self, *, serves: bool, host: str | None = None) -> PeerCertificates | None:
        """Return the certificates of this process, as a server or as a client; None without TLS. SettingsError if the
        certificates cannot be used. `host`: the name or IP address by which clients reach the server.
        """
        try:
            found = PeerCertificates.of(self.tls_ca, self.tls_certificate, self.tls_key)
            if found is not None:
                found.check(serves=serves, host=host)
        except StorageError as error:
            raise SettingsError(str(error)) from error
        return found


class ClientSettings(PeerSettings):
    """Settings of services that use the dictionary."""

    dictionaries: str = Field(
        min_length=1,
        description="addresses of the dictionaries, separated by commas: grpc://host:port, with TLS grpc+tls://host:port",
    )

    def locations(self) -> tuple[str, ...]:
        """Return the addresses of the dictionaries."""
        return tuple(self.dictionaries.split(","))

    def terms(self) -> FlightTerms:
        """Return a client of the dictionaries. SettingsError if the certificates or the dictionaries' addresses cannot
        be used.
        """
        try:
            return FlightTerms(self.locations(), self.peer_certificates(serves=False))
        except StorageError as error:
            raise SettingsError(str(error)) from error


def peer_tls(certificates: PeerCertificates | None) -> PeerTls | None:
    """Return the TLS of connections between stores and query engines; None without certificates. SettingsError if TLS
    cannot be used.
    """
    try:
        return None if certificates is None else PeerTls(certificates)
    except (StorageError, DataPlaneError) as error:
        raise SettingsError(f"PENSTOCK_TLS_CERTIFICATE: {error}") from error


def topics_of(context: Context[S], principal: Principal) -> ClusterTopics:
    """Return the cluster's topics. Creates missing topics that the service uses, or waits until a service with the
    permission to create topics has created these topics.

    DeniedError if the service lacks the permission for an operation on these topics. SettingsError if PENSTOCK_SHARDS
    or PENSTOCK_BUCKETS differs from the number of partitions of the existing topic.
    """
    topics = ClusterTopics(context.names, context.settings.shards, context.settings.buckets)
    _create(context, used_topics(principal, topics))
    _check_shape(context, topics)
    lacking = lacking_operations(context.log, principal, Cluster(context.names.prefix))
    if lacking:
        errors = [context.log.denied(operation, f"topic {topic}") for operation, topic in lacking]
        raise DeniedError("; ".join(map(str, errors)))
    return topics


def _create(context: Context[S], used: Sequence[Topic]) -> None:
    """Create topics, or wait until a service with the permission to create topics has created these topics."""
    for attempt in range(_TRIES):
        try:
            context.log.create(used)
        except TransientError:
            if attempt + 1 == _TRIES:
                raise
        except DeniedError as error:
            if attempt % _QUIET == 0:
                context.logger.warning("waiting for topics that this service may not see or create", reason=str(error))
        else:
            return
        time.sleep(_PAUSE_S)


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
    """Return the secret in a file, without white space at the start and end. SettingsError if the file cannot be read,
    or if the secret is too short.
    """
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise SettingsError(f"PENSTOCK_SECRET_FILE: {error}") from error
    if len(secret) < _MIN_SECRET_BYTES:
        raise SettingsError(f"PENSTOCK_SECRET_FILE: {path} has less than {_MIN_SECRET_BYTES} bytes")
    return secret
