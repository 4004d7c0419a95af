"""The store's process: shards in shared memory and on the data plane, leases, checkpoints."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field

from penstock.acls import Principal
from penstock.errors import StorageError
from penstock.http.web_access import is_loopback
from penstock.log.view import records_behind
from penstock.remote import Server
from penstock.remote.control_connection import Address
from penstock.remote.rdma_requirements import missing
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClientSettings, peer_tls, read_secret, topics_of
from penstock.runtime.metrics import Tally
from penstock.runtime.settings import SettingsError
from penstock.services.store.background_checkpoint import BackgroundCheckpoint
from penstock.services.store.leases import Leases, LeaseServer
from penstock.services.store.shard_checkpoints import ShardCheckpoints
from penstock.services.store.shard_openings import loading_thread
from penstock.services.store.store import Store

if TYPE_CHECKING:
    from penstock.remote.tls import PeerTls
    from penstock.runtime.metrics import Metrics


class StoreSettings(ClientSettings):
    """Settings of a store."""

    secret_file: Path = Field(description="secret that stores and engines share: a file of at least 16 bytes")
    listen: str = Field("127.0.0.1:0", description="host:port at which engines request leases; port 0 = any free port")
    data_port: int = Field(
        0, ge=0, le=65_535, description="port of the data plane, on the host of `listen`; 0 = any free port"
    )
    regions_dir: Path = Field(
        Path("/dev/shm"),  # noqa: S108
        description="memory file system for the shards' regions; each instance uses a folder of its own in it",
    )
    data_dir: Path | None = Field(
        None,
        description="folder of the checkpoints, preferably shared by all stores; none = a start reads the whole log",
    )
    checkpoint_s: float = Field(60.0, gt=0, description="seconds between checkpoints")
    rdma_device: str = Field("", description="RDMA device of the data plane; empty = the first usable one")
    rdma_required: bool = Field(
        False, description="do not start if regions cannot be served over RDMA; the error names what is missing"
    )
    rdma_unencrypted: bool = Field(
        False, description="offer RDMA also with certificates, although it does not encrypt; engines need it too"
    )
    data_insecure: bool = Field(False, description="listen on other addresses than the loopback interface without TLS")
    poll_ms: int = Field(10, ge=1, le=10_000, description="maximum time that a step waits for input")

    def secret(self) -> bytes:
        """Return the secret. SettingsError if the file cannot be read, or if the secret is too short."""
        return read_secret(self.secret_file)

    def served_tls(self) -> PeerTls | None:
        """Return TLS for leases and the data plane; None without certificates. SettingsError if the certificates cannot
        be used. SettingsError also if there are no certificates and other machines can reach the store, unless
        `data_insecure` is set. SettingsError also if there are certificates and RDMA is required, unless
        `rdma_unencrypted` is set.
        """
        host = Address.of(self.listen).host
        certificates = self.peer_certificates(serves=True, host=self.advertised_host or host)
        if certificates is None and not self.data_insecure and not is_loopback(host):
            raise SettingsError(
                f"PENSTOCK_LISTEN is {self.listen}, but shards would be sent without encryption: set PENSTOCK_TLS_CA,"
                " PENSTOCK_TLS_CERTIFICATE and PENSTOCK_TLS_KEY, or PENSTOCK_DATA_INSECURE=true"
            )
        if certificates is not None and self.rdma_required and not self.rdma_unencrypted:
            raise SettingsError(
                "PENSTOCK_RDMA_REQUIRED: RDMA does not encrypt; with certificates it needs"
                " PENSTOCK_RDMA_UNENCRYPTED=true"
            )
        return peer_tls(certificates)


_ALONE_S = 1.0  # s that a stopping store waits for other stores to prepare its shards


class ServedStore:
    """A store with its sockets and files."""

    def __init__(self, context: Context[StoreSettings]) -> None:
        settings, topics = context.settings, topics_of(context, Principal.store)
        listen = Address.of(settings.listen)
        host, secret, tls = listen.host, settings.secret(), settings.served_tls()
        if settings.rdma_required and (wrong := missing(settings.rdma_device)):
            raise SettingsError(f"PENSTOCK_RDMA_REQUIRED: {'; '.join(wrong)}")
        server = Server(
            host,
            settings.data_port,
            secret,
            rdma_device=settings.rdma_device,
            tls=tls,
            rdma_unencrypted=settings.rdma_unencrypted,
        )
        leases = Leases()
        self.leases = LeaseServer(leases, host, listen.port, secret, server.port, tls)
        address = Address(settings.advertised_host or host, self.leases.address.port)
        root = settings.data_dir
        checkpoints = None if root is None else ShardCheckpoints(root, settings.instance, topics.shards)
        regions = settings.regions_dir / f"{settings.prefix}-{settings.instance}"
        terms = settings.terms()
        self.store = Store(
            context.log,
            topics,
            settings.instance,
            terms,
            context.clock,
            server,
            regions,
            checkpoints,
            leases,
            address,
            loading_thread(),
        )
        self._saving = None if checkpoints is None else BackgroundCheckpoint(self.store, checkpoints)
        self._every_s = settings.checkpoint_s
        self._due = time.monotonic() + self._every_s
        self._stopping, self._logger = context.stopping, context.logger
        self._logged_error: str | None = None
        self.unsaved: str | None = None  # why the last checkpoint failed
        self._asked = 0.0
        self.leases.start()
        self.store.send_heartbeats()

    def step(self, timeout_s: float) -> bool:
        """Perform one step of the store, and continue its checkpoints. Returns whether the store did anything."""
        worked = self.store.step(timeout_s)
        if self.store.last_error != self._logged_error:
            self._logged_error = self.store.last_error
            self._logger.warning("waiting", reason=self._logged_error or "over")
        if not worked and (self._logged_error is not None or not self.store.followers()):
            self._stopping.wait(timeout_s)  # the step itself has not waited for input
        if self._saving is not None:
            self._save(self._saving)
        return worked

    def _save(self, saving: BackgroundCheckpoint) -> None:
        """Begin checkpoints that are due, and continue checkpoints in progress. If a checkpoint fails, the shard's
        previous checkpoint remains, and a restart reads more of the log.
        """
        if time.monotonic() >= self._due:
            saving.begin()
            self._due = time.monotonic() + self._every_s
        try:
            if saving.step():
                self.unsaved = None
        except StorageError as error:
            self.unsaved = str(error)
            self._logger.warning("no checkpoint", reason=self.unsaved)

    def leave(self) -> None:
        """Request that other stores take over the shards."""
        self._asked = time.monotonic()
        self.store.leave()

    @property
    def left(self) -> bool:
        """Whether the store can stop. The store can stop if it has no shards any more. The store can also stop if,
        `_ALONE_S` after `leave`, at least one of its shards has no other store that prepares the shard (`Store.alone`).
        """
        return self.store.left or (time.monotonic() > self._asked + _ALONE_S and self.store.alone)

    def close(self) -> None:
        """Close the store without a new checkpoint. A restarted store reads the steps since the last checkpoint from
        the log.
        """
        self.leases.close()
        if self._saving is not None:
            self._saving.close()
        self.store.close()


class StoreGauges:
    """The metrics of a store. Threads other than the store's can call `observe`."""

    def __init__(self, store: Store, metrics: Metrics, context: Context[StoreSettings]) -> None:
        self._store, self._metrics, self._context = store, metrics, context
        self._tuples, self._batches = Tally(metrics.tuples), Tally(metrics.batches)
        self._regions: set[str] = set()

    def observe(self) -> None:
        """Update the metrics."""
        store, metrics, now_ms = self._store, self._metrics, self._context.clock.now_ms()
        followers = store.followers()
        metrics.active.set(bool(followers))
        metrics.leases.set(len(store.leases))
        regions = {f"shard {number}": shard for number, shard in store.shards.items()}
        for name, shard in regions.items():
            metrics.memory.labels(name).set(shard.store.used_bytes())
            metrics.memory.labels(f"{name} logs").set(shard.store.log_bytes())
        for name in self._regions - regions.keys():
            metrics.memory.remove(name)
            metrics.memory.remove(f"{name} logs")
        self._regions = set(regions)
        if not followers:
            return
        first, last = followers[0], followers[-1]
        self._tuples.reach(first.graph.tuples)
        self._batches.reach(first.graph.batches)
        for stream in list(last.graph.streams):
            if stream.closed_ms is not None:
                metrics.batch_age.labels(stream.iri).set((now_ms - stream.closed_ms) / 1000)
                metrics.local_vts.labels(stream.iri).set(stream.closed_ms)
        for topic, records in records_behind(self._context.log, last.positions()).items():
            metrics.lag.labels(topic).set(records)


def open_store(context: Context[StoreSettings]) -> ServedStore:
    """Open the store. The store has no shards until the coordinator assigns shards to the store."""
    made = ServedStore(context)
    context.observers.append(StoreGauges(made.store, context.metrics, context).observe)
    context.health.check("shards", lambda: made.store.unready)
    context.health.check("checkpoint", lambda: made.unsaved)
    context.logger.info("leases", address=str(made.leases.address), data_port=made.leases.data_port)
    return made


def main() -> int:
    """Run the service."""
    return run("store", StoreSettings, open_store)


if __name__ == "__main__":
    sys.exit(main())
