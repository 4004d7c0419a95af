"""The query engine's process: evaluates its buckets and writes checkpoints. The process serves one-shot queries at
/sparql, graphs at /rdf-graphs, the status of its queries at /queries/NAME/status, and the members of its query sets at
/queries/NAME/members.
"""

from __future__ import annotations

import random
import secrets
import sys
import time
from pathlib import Path  # noqa: TC003 - pydantic reads it
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from penstock.acls import Principal
from penstock.engine.checkpoint.data_directory import DataDirectory
from penstock.engine.limits import Limits
from penstock.engine.oneshot.local_documents import checked_directory
from penstock.errors import DataError, StorageError
from penstock.http import member_pages, query_statuses, sparql
from penstock.http.graph_store import GraphStore
from penstock.log.view import records_behind
from penstock.query.planning.cost.placement import Execution  # noqa: TC001 - pydantic reads it
from penstock.remote.lease_keeper import Keeper
from penstock.remote.store_links import ControlLink, StoreLinks
from penstock.runtime import Context, run
from penstock.runtime.cluster_settings import ClientSettings, peer_tls, read_secret, topics_of
from penstock.runtime.metrics import Tally
from penstock.runtime.settings import SettingsError
from penstock.services.query_engine.query_engine import QueryEngine
from penstock.services.query_engine.replica_checkpoint import ReplicaFactory
from penstock.updates import effect_routes

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.engine.runtime import Runtime
    from penstock.remote.tls import PeerTls
    from penstock.runtime.metrics import Metrics

_MEASURE_S = 1.0  # interval between two measurements of memory
_ALONE_S = 1.0  # s that a stopping engine waits for the placement to move its buckets
BEHIND_S = 10.0
"""Maximum time in s since an engine was at the end of the log. After a longer time, the engine is not ready. The time
is not zero, because under load a single step always leaves some records to read.
"""
_NAMED = 10  # maximum number of query names in a log line


class QueryEngineSettings(ClientSettings):
    """Settings of a query engine."""

    graph: Literal["stores", "engine"] = Field(
        "stores", description="`stores`: read the stored graph from stores; `engine`: hold all of it in this process"
    )
    secret_file: Path | None = Field(
        None, description="secret that stores and engines share: a file of at least 16 bytes; required to read stores"
    )
    transport: Literal["auto", "shm", "tcp", "rdma"] = Field(
        "auto", description="how stores are read: `shm`, `rdma`, `tcp`; `auto` = the first usable one in this order"
    )
    rdma_device: str = Field("", description="RDMA device for reads; empty = the first usable one")
    rdma_unencrypted: bool = Field(
        False, description="permit RDMA also with certificates, although it does not encrypt; stores need it too"
    )
    execution: Execution = Field(
        "auto",
        description="steps over the stored graph: `in-place` (by reads), `fork-join` (in the stores, ADR 18), or"
        " `auto`: the cheaper one",
    )
    lease_ms: int = Field(
        10_000, ge=1_000, le=600_000, description="how long a store retains old state for an engine that sends nothing"
    )
    wait_ms: int = Field(
        200, ge=0, le=1_000, description="how long an evaluation waits for stores before the engine does other work"
    )
    forget_after_s: float = Field(
        0.0, ge=0, description="if not 0, report to the coordinator which terms no query needs (ADR 50)"
    )
    data_dir: Path | None = Field(None, description="folder of the checkpoints; none = each start reads the whole log")
    load_directory: Path | None = Field(
        None, description="directory of the files that `LOAD` in updates may read; none = `LOAD` is an error"
    )
    checkpoint_s: float = Field(30.0, gt=0, description="seconds between checkpoints")
    poll_ms: int = Field(10, ge=1, le=10_000, description="maximum time that a step waits for input")

    def links(self) -> StoreLinks | None:
        """Return links to the stores, or None if the engine has the stored graph. SettingsError if the secret is
        missing, or if the certificates cannot be used.
        """
        if self.graph == "engine":
            return None
        if self.secret_file is None:
            raise SettingsError("PENSTOCK_SECRET_FILE is needed to read stores (without any: PENSTOCK_GRAPH=engine)")
        secret, tls = read_secret(self.secret_file), self.stores_tls()

        def reach(node: int, address: str) -> ControlLink:
            how = (secret, self.transport, self.rdma_device)
            return ControlLink(node, address, *how, tls=tls, rdma_unencrypted=self.rdma_unencrypted)

        name = f"{self.instance}-{secrets.token_hex(4)}"
        return StoreLinks(
            name, self.shards, reach, lease_ms=self.lease_ms, secret=secret, tls=tls, execution=self.execution
        )

    def files(self) -> Path | None:
        """Return the directory of the files that LOAD is allowed to read; None if there is none. SettingsError if the
        directory cannot be used.
        """
        try:
            return checked_directory(self.load_directory)
        except DataError as error:
            raise SettingsError(f"PENSTOCK_LOAD_DIRECTORY: {error}") from error

    def stores_tls(self) -> PeerTls | None:
        """Return the TLS of connections to stores; None without certificates. SettingsError if the certificates cannot
        be used. SettingsError also if there are certificates and the transport is RDMA, unless `rdma_unencrypted` is
        set.
        """
        tls = peer_tls(self.peer_certificates(serves=False))
        if tls is not None and self.transport == "rdma" and not self.rdma_unencrypted:
            raise SettingsError(
                "PENSTOCK_TRANSPORT: RDMA does not encrypt; with certificates it needs PENSTOCK_RDMA_UNENCRYPTED=true"
            )
        return tls


class AtEnd:
    """Observes whether an engine keeps up with the log. The engine's thread calls `look` after each step; any thread
    can call `behind`.
    """

    def __init__(self, caught_up: Callable[[], bool], now: Callable[[], float] = time.monotonic) -> None:
        self._caught_up, self._now = caught_up, now
        self._last: float | None = None

    def look(self) -> None:
        """Record the time if the engine is at the end of the log."""
        if self._caught_up():
            self._last = self._now()

    def behind(self) -> str | None:
        """Return the reason why the engine is not ready, or None if the engine was at the end of the log in the last
        `BEHIND_S`.
        """
        if self._last is None:
            return "behind the end of the log"
        late_s = self._now() - self._last
        return f"behind the end of the log for {late_s:.0f} s" if late_s > BEHIND_S else None


class CheckpointedEngine:
    """An engine with its checkpoint directory."""

    def __init__(self, context: Context[QueryEngineSettings]) -> None:
        settings = context.settings
        topics = topics_of(context, Principal.query_engine)
        self._directory = None if settings.data_dir is None else DataDirectory(settings.data_dir, read_only=False)
        terms = settings.terms()
        rng = random.Random()  # noqa: S311 - RAND and UUID
        clock, patience_s = context.clock, settings.wait_ms / 1000
        self._factory = ReplicaFactory(
            self._directory, terms, topics.shards, Limits(), clock.now_ms, rng, settings.links(), patience_s
        )
        self.engine = QueryEngine(
            context.log,
            topics,
            settings.instance,
            self._factory,
            clock,
            progress=lambda: _progress(context),
            interrupted=lambda: bool(context.stopping),
            load_directory=settings.files(),
            reports_floors=settings.forget_after_s > 0,
        )
        self._replica = self.engine.replica
        graph = self.engine.graph
        self._keeper = None if graph is None else Keeper(graph, settings.lease_ms)
        self._every_s = settings.checkpoint_s
        self._due = time.monotonic() + self._every_s
        self._stopping, self._logger = context.stopping, context.logger
        self._logged_error: str | None = None
        self._asked = 0.0
        self.unsaved: str | None = None  # why the last checkpoint failed
        self.at_end = AtEnd(self.engine.caught_up)
        # measured in the engine's thread, because other threads must not read the data
        self.memory: dict[str, int] = {}
        self._measured = -_MEASURE_S

    def step(self, timeout_s: float) -> bool:
        """Perform one step of the engine, and write a checkpoint if one is due. Returns whether the engine did
        anything.
        """
        worked = self.engine.step(timeout_s)
        self.at_end.look()
        if self.engine.last_error != self._logged_error:
            self._logged_error = self.engine.last_error
            self._logger.warning("waiting", reason=self._logged_error or "over")
        for (after_ms, until_ms), queries in self.engine.commit_metrics.leaps().items():
            named = ", ".join(sorted(queries)[:_NAMED])
            self._logger.warning(
                "event time leapt: instants are not evaluated (max_catch_up)",
                after_ms=after_ms,
                until_ms=until_ms,
                queries=len(queries),
                named=named,
            )
        if not worked and (self._logged_error is not None or self._replica.held is not None):
            self._stopping.wait(timeout_s)  # such a step does not wait for input
        if self._directory is not None and time.monotonic() >= self._due:
            self._checkpoint()
            self._due = time.monotonic() + self._every_s
        if time.monotonic() >= self._measured + _MEASURE_S:
            self.memory = memory_of(self._replica.runtime)
            self._measured = time.monotonic()
        return worked

    def leave(self) -> None:
        """Request that other engines take over the buckets."""
        self._asked = time.monotonic()
        self.engine.leave()

    @property
    def left(self) -> bool:
        """Whether the engine can stop. The engine can stop if it has no buckets any more. The engine can also stop if
        no other engine takes over. This is the case if, `_ALONE_S` after `leave`, the placement has not reassigned any
        of the engine's buckets.
        """
        alone = time.monotonic() > self._asked + _ALONE_S and self.engine.holds_all
        return self.engine.left or alone

    def _checkpoint(self) -> None:
        """Write a checkpoint. If this fails, the previous checkpoint remains, and a restart reads more of the log."""
        try:
            self._factory.save(self._replica)
        except StorageError as error:
            self.unsaved = str(error)
            self._logger.warning("no checkpoint", reason=self.unsaved)
        else:
            self.unsaved = None

    def close(self) -> None:
        """Close the engine without a checkpoint. A restarted engine reads the steps since the last checkpoint from the
        log.
        """
        if self._keeper is not None:
            self._keeper.close()
        self.engine.close()
        if self._directory is not None:
            self._directory.close(clean=True)


def memory_of(runtime: Runtime) -> dict[str, int]:
    """Return the memory of an engine in bytes, by purpose. Call in the engine's thread."""
    core = runtime.core
    return {
        **{f"slices {stream.iri}": stream.core.live_bytes() for stream in runtime.streams},
        "windows": runtime.registry.pool.bytes(),
        "stored graph": core.store.used_bytes(),
        "append logs": core.store.log_bytes(),
        "terms": core.dictionary.bytes(),
    }


class EngineGauges:
    """The metrics of an engine. Threads other than the engine's can call `observe`."""

    def __init__(self, made: CheckpointedEngine, metrics: Metrics, context: Context[QueryEngineSettings]) -> None:
        self._made, self._engine, self._metrics, self._context = made, made.engine, metrics, context
        self._evaluations, self._transactions = Tally(metrics.evaluations), Tally(metrics.transactions)
        self._refused = Tally(metrics.refused)
        self._forks, self._forked_rows = Tally(metrics.forks), Tally(metrics.forked_rows)
        self._gaps, self._skipped = Tally(metrics.gaps), Tally(metrics.skipped)
        self._updated, self._complete = Tally(metrics.updated), Tally(metrics.complete)

    def observe(self) -> None:
        """Update the metrics."""
        engine, metrics, now_ms = self._engine, self._metrics, self._context.clock.now_ms()
        runtime = engine.replica.runtime
        metrics.active.set(bool(engine.buckets))
        metrics.buckets.set(len(engine.buckets))
        metrics.work.set(engine.meter.share)
        self._evaluations.reach(engine.commit_metrics.evaluations)
        self._transactions.reach(engine.commit_metrics.transactions)
        self._gaps.reach(engine.commit_metrics.gaps)
        self._skipped.reach(engine.commit_metrics.skipped)
        self._refused.reach(engine.sinks.refused)
        maintenance = runtime.core.maintenance
        self._updated.reach(maintenance.updated)
        self._complete.reach(maintenance.complete)
        metrics.state.set(maintenance.state_bytes)
        if engine.graph is not None and (forking := engine.graph.links.forking) is not None:
            self._forks.reach(forking.forks)
            self._forked_rows.reach(forking.rows)
        for seconds, evaluations in engine.commit_metrics.take():
            metrics.latency.observe_many(seconds, evaluations)
        for stream in list(runtime.streams):
            if stream.closed_ms is not None:
                metrics.batch_age.labels(stream.iri).set((now_ms - stream.closed_ms) / 1000)
        for region, held in self._made.memory.items():
            metrics.memory.labels(region).set(held)
        for topic, records in records_behind(self._context.log, engine.read_to()).items():
            metrics.lag.labels(topic).set(records)


def open_engine(context: Context[QueryEngineSettings]) -> CheckpointedEngine:
    """Open the engine, start its heartbeats, and add its routes, health checks and metrics to `context`."""
    made = CheckpointedEngine(context)
    ask = sparql.asking(made.engine.one_shot)
    context.routes.extend(sparql.routes(ask, Limits()))
    context.routes.extend(GraphStore(ask).routes())
    context.routes.extend(effect_routes.routes(made.engine.updates))
    context.routes.extend(query_statuses.routes(made.engine.status))
    context.routes.extend(member_pages.routes(made.engine.member_lists.find))
    context.listening.append(made.engine.answer_at)
    made.engine.send_heartbeats()
    context.health.check("log", made.at_end.behind)
    context.health.check("checkpoint", lambda: made.unsaved)
    context.observers.append(EngineGauges(made, context.metrics, context).observe)
    return made


def _progress(context: Context[QueryEngineSettings]) -> None:
    """Report to the health check that an evaluation has made progress. OverdueError if the deadline of a shutdown has
    passed; uncommitted work is then discarded.
    """
    context.health.progress()
    context.stopping.check()


def main() -> int:
    """Run the service."""
    return run("query-engine", QueryEngineSettings, open_engine)


if __name__ == "__main__":
    sys.exit(main())
