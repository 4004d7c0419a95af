"""The dictionary's process. One instance is active; the others are on standby."""

from __future__ import annotations

import sys
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import Field

from penstock.acls import Principal
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.http.web_access import is_loopback
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import PeerSettings, topics_of
from penstock.runtime.settings import SettingsError
from penstock.services.dictionary.dictionary_instance import DictionaryNode
from penstock.services.dictionary.flight_gate import GateLimits

if TYPE_CHECKING:
    from penstock.term_ids.peer_certificates import PeerCertificates


class DictionarySettings(PeerSettings):
    """Settings of a dictionary."""

    data_dir: Path | None = Field(None, description="folder of the snapshots; none = each start reads the topic")
    checkpoint_s: float = Field(60.0, gt=0, description="seconds between snapshots")
    terms_in_memory: int = Field(
        0,
        ge=0,
        description="number of terms above which unused terms leave the memory; needs `data_dir`, whose archive then"
        " contains all terms (ADR 104); 0 = all terms remain in memory",
    )
    listen: str = Field("127.0.0.1:0", description="host:port on which look-ups are answered; port 0 = any free port")
    max_message_mb: int = Field(
        96, ge=72, le=2_047, description="maximum size of one request, MiB (`max_message_bytes`)"
    )
    flight_insecure: bool = Field(
        False, description="answer look-ups without TLS on addresses other than the loopback interface"
    )

    def served_certificates(self) -> PeerCertificates | None:
        """Return the certificates of the server for look-ups; None without TLS. SettingsError if the certificates
        cannot be used. SettingsError also if other machines could reach a server without TLS, unless `flight_insecure`
        is set.
        """
        certificates = self.peer_certificates(serves=True)
        host = urlsplit(f"grpc://{self.listen}").hostname or ""
        if certificates is None and not self.flight_insecure and not is_loopback(host):
            raise SettingsError(
                f"PENSTOCK_LISTEN is {self.listen}, but clients are not authenticated: set PENSTOCK_TLS_CA,"
                " PENSTOCK_TLS_CERTIFICATE and PENSTOCK_TLS_KEY, or PENSTOCK_FLIGHT_INSECURE=true to answer all clients"
            )
        return certificates


class SnapshotDictionary:
    """A dictionary instance and its snapshot directory."""

    def __init__(self, context: Context[DictionarySettings]) -> None:
        settings = context.settings
        if settings.terms_in_memory and settings.data_dir is None:
            raise SettingsError("PENSTOCK_TERMS_IN_MEMORY needs PENSTOCK_DATA_DIR, for the archive of terms")
        topics = topics_of(context, Principal.dictionary)
        certificates = settings.served_certificates()
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
            certificates=certificates,
            in_memory=settings.terms_in_memory,
        )

    def step(self, timeout_s: float) -> bool:
        """Perform one step of the instance. Returns whether the instance read new terms."""
        return self.node.step(timeout_s)

    def close(self) -> None:
        """Close the instance without a snapshot. A restarted instance reads the terms since the last snapshot from the
        topic.
        """
        self.node.close()
        if self._directory is not None:
            self._directory.close(clean=True)


def open_dictionary(context: Context[DictionarySettings]) -> SnapshotDictionary:
    """Open the dictionary, which is on standby until its election."""
    made = SnapshotDictionary(context)
    context.observers.append(lambda: context.metrics.active.set(made.node.active))
    context.observers.append(lambda: context.metrics.memory.labels("terms").set(made.node.bytes))
    context.observers.append(lambda: context.metrics.terms.labels("memory").set(made.node.terms_in_memory))
    context.observers.append(lambda: context.metrics.terms.labels("all").set(made.node.terms))
    context.health.check("snapshot", lambda: made.node.unsaved)
    context.logger.info("answering", port=made.node.port)
    return made


def main() -> int:
    """Run the service."""
    return run("dictionary", DictionarySettings, open_dictionary)


if __name__ == "__main__":
    sys.exit(main())
