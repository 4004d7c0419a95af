"""`penstock doctor`: finds out why an installation does not work."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.exit_codes import FAILED, FINE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from penstock.doctor import Finding
    from penstock.runtime.settings import ServiceSettings
    from penstock.term_ids.peer_certificates import PeerCertificates

_MARKS = {"ok": "ok      ", "skipped": "skipped ", "warning": "WARNING ", "failure": "FAILURE "}


def doctor(
    service: Annotated[str, typer.Argument(help="Service whose settings are checked.")] = "store",
    *,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON array of findings.")] = False,
) -> int:
    """Check this machine, the brokers and the cluster with the settings of a service (PENSTOCK_*, PENSTOCK_CONFIG).

    Prints one line per check, and a remedy for each warning and failure. Exit code 1 if a check fails.
    """
    from penstock.doctor import Level  # noqa: PLC0415 - the cluster extra

    found = []
    for finding in findings(service):
        found.append(finding)
        if not as_json:
            print(f"{_MARKS[finding.level]}{finding.check}: {finding.text}")
            if finding.remedy:
                print(f"         -> {finding.remedy}")
    if as_json:
        print(json.dumps([asdict(finding) for finding in found], indent=2))
    return FAILED if any(finding.level is Level.failure for finding in found) else FINE


def findings(service: str) -> Iterator[Finding]:
    """Yield the findings of all checks. Omits each check that cannot run because an earlier check failed."""
    from penstock.doctor import files, machine  # noqa: PLC0415
    from penstock.doctor.findings import failure  # noqa: PLC0415
    from penstock.runtime.settings import SettingsError, load  # noqa: PLC0415

    yield from machine.packages()
    kinds = _settings_of_services()
    if service not in kinds:
        raise typer.BadParameter(f"{service} is no service: {', '.join(kinds)}")
    try:
        settings = load(kinds[service])
        settings.tokens()
        issuer = settings.issuer()
        certificates, own = settings.certificates(), _peer_certificates(settings)
    except SettingsError as error:
        for line in str(error).splitlines():
            yield failure(
                "settings", line, "docs/operations.md names the main settings, the reference page all of them"
            )
        return
    yield from machine.clock()
    yield from machine.open_files()
    yield from _storage(settings)
    if settings.http_tokens_file is not None:
        yield from files.tokens(settings.http_tokens_file)
    if issuer is not None:
        from penstock.doctor import issuer_keys  # noqa: PLC0415 - loads cryptography

        yield from issuer_keys.keys(issuer)
    if certificates is not None:
        yield from files.certificate(certificates)
    if own is not None:
        yield from files.certificate(own.served, "PENSTOCK_TLS")
    yield from _cluster(service, settings)


def _settings_of_services() -> dict[str, type[ServiceSettings]]:
    from penstock.services.adaptor.service import AdaptorSettings  # noqa: PLC0415
    from penstock.services.coordinator.service import CoordinatorSettings  # noqa: PLC0415
    from penstock.services.dictionary.service import DictionarySettings  # noqa: PLC0415
    from penstock.services.dispatcher.service import DispatcherSettings  # noqa: PLC0415
    from penstock.services.query_engine.service import QueryEngineSettings  # noqa: PLC0415
    from penstock.services.store.service import StoreSettings  # noqa: PLC0415

    return {
        "adaptor": AdaptorSettings,
        "coordinator": CoordinatorSettings,
        "dictionary": DictionarySettings,
        "dispatcher": DispatcherSettings,
        "query-engine": QueryEngineSettings,
        "store": StoreSettings,
    }


def _peer_certificates(settings: ServiceSettings) -> PeerCertificates | None:
    """Return the certificates that a service uses in connections with a dictionary. None if it uses no certificates.
    SettingsError if these certificates cannot be used. SettingsError also if the certificates for connections between
    stores and query engines cannot be used.
    """
    from penstock.runtime.cluster_settings import ClientSettings  # noqa: PLC0415
    from penstock.services.dictionary.service import DictionarySettings  # noqa: PLC0415
    from penstock.services.query_engine.service import QueryEngineSettings  # noqa: PLC0415
    from penstock.services.store.service import StoreSettings  # noqa: PLC0415

    if isinstance(settings, DictionarySettings):
        return settings.served_certificates()
    if isinstance(settings, StoreSettings):
        settings.served_tls()
    if isinstance(settings, QueryEngineSettings) and settings.graph == "stores":
        settings.stores_tls()
    return settings.peer_certificates(serves=False) if isinstance(settings, ClientSettings) else None


def _storage(settings: ServiceSettings) -> Iterator[Finding]:
    """Check the folders, secrets, devices and ports that the service's settings name."""
    from penstock.doctor import files, machine, rdma_devices  # noqa: PLC0415
    from penstock.remote.control_connection import Address  # noqa: PLC0415

    data_dir: Path | None = getattr(settings, "data_dir", None)
    if data_dir is not None:
        yield from machine.disk(data_dir)
    secret: Path | None = getattr(settings, "secret_file", None)
    if secret is not None:
        yield from files.secret(secret)
    regions: Path | None = getattr(settings, "regions_dir", None)
    if regions is not None:
        yield from machine.shared_memory(regions)
    device: str | None = getattr(settings, "rdma_device", None)
    if device is not None:
        yield from machine.rdma(device, required=bool(getattr(settings, "rdma_required", False)))
        yield from rdma_devices.devices(device)
    listening = {"PENSTOCK_HTTP_PORT": (settings.http_host, settings.http_port)}
    listen: str | None = getattr(settings, "listen", None)
    if listen is not None:
        address = Address.of(listen)
        listening["PENSTOCK_LISTEN"] = (address.host, address.port)
        listening["PENSTOCK_DATA_PORT"] = (address.host, getattr(settings, "data_port", 0))
    yield from machine.ports(listening)


def _cluster(service: str, settings: ServiceSettings) -> Iterator[Finding]:
    """Check the topics and permissions that `service` has on the brokers, and the services that `service` contacts."""
    from penstock.acls import Cluster, Principal, used_topics  # noqa: PLC0415
    from penstock.doctor import Level, brokers, running_cluster  # noqa: PLC0415
    from penstock.doctor.findings import failure, skipped  # noqa: PLC0415
    from penstock.log import DeniedError, TransientError  # noqa: PLC0415
    from penstock.log.clock import SystemClock  # noqa: PLC0415
    from penstock.log.kafka import KafkaLog  # noqa: PLC0415
    from penstock.log.topics import TopicNames  # noqa: PLC0415
    from penstock.replication.cluster_topics import ClusterTopics  # noqa: PLC0415

    log = KafkaLog(settings.bootstrap_servers, settings.kafka_properties())
    try:
        [connected] = brokers.connection(log, settings.bootstrap_servers)
        yield connected
        if connected.level is not Level.ok:
            return
        topics = ClusterTopics(TopicNames(settings.prefix), settings.shards, getattr(settings, "buckets", 8))
        principal = Principal(service)
        used = used_topics(principal, topics)
        states = brokers.describe(log, [topic.name for topic in used])
        yield from brokers.topics(topics, states, used)
        if states:
            group: str = getattr(settings, "adaptor_group", None) or ""
            yield from brokers.permissions(log, principal, Cluster(settings.prefix, group))
        yield from brokers.retention(topics.names.shards, states, _oldest_s(getattr(settings, "data_dir", None)))
        given: str | None = getattr(settings, "dictionaries", None)
        if given is not None and topics.heartbeats in states:
            yield from running_cluster.dictionaries(given.split(","), _peer_certificates(settings))
        try:
            yield from running_cluster.clocks(log, topics.heartbeats, SystemClock())
        except DeniedError as error:
            yield skipped("services", f"{error}")
    except TransientError as error:
        yield failure("brokers", str(error), "the brokers stopped answering: see their logs")
    finally:
        log.close()


def _oldest_s(folder: Path | None) -> float | None:
    """Return the age in s of the oldest checkpoint below a data directory. None if the directory has no checkpoint."""
    if folder is None or not folder.is_dir():
        return None
    times = [manifest.stat().st_mtime for manifest in folder.rglob("CURRENT")]
    return time.time() - min(times) if times else None
