"""The adaptor on Spark on a broker with TLS that enforces ACLs: its own principal, exactly the ACLs that `penstock acls`
prints, and a password that only a file of the service contains.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from e2e.test_acls import EX, PROBES, RARE, ROWS, S, labels
from penstock import Client
from penstock.acls import Cluster, Principal, required_acls
from penstock.cli.app import main
from penstock.cli.cluster.local_cluster import AdaptorKind
from penstock.errors import StorageError
from penstock.spark.session import connector_jars
from support.authorizing import PASSWORD, AuthorizingBroker, with_principals
from support.cluster_load import small

PREFIX = "sparked"
CLUSTER = Cluster(PREFIX, groups=("dashboard",))
BOUND_S = 400.0  # a busy machine starts Spark for minutes


@pytest.fixture
def guarded(broker_jars, tmp_path):
    del broker_jars  # only for its means
    pytest.importorskip("pyspark", reason="the extra `spark` is not installed")
    try:
        connector_jars()
    except StorageError as error:
        pytest.skip(str(error))
    folder = tmp_path / "certificates"
    assert main(["certificates", str(folder), "--name", "broker", "--host", "127.0.0.1"]) == 0
    made = AuthorizingBroker(tmp_path / "broker", PREFIX, folder)
    with made.broker:
        made.allow_all(CLUSTER)
        yield made


def test_spark_reads_and_writes_with_its_own_acls_and_a_password_from_a_file(guarded, tmp_path, monkeypatch):
    with_principals(monkeypatch, guarded, tmp_path)
    reads, writes = (guarded.properties(Principal[name]) for name in ("consumer", "producer"))
    servers = guarded.bootstrap_servers
    with (
        small(servers, PREFIX, tmp_path / "c", stores=1, adaptor=AdaptorKind.spark) as cluster,
        Client(servers, cluster.url, prefix=PREFIX, kafka=reads) as client,
        Client(servers, cluster.url, prefix=PREFIX, kafka=writes) as producer,
    ):
        client.load(f'<{EX}a> <{EX}label> "A" .'.encode(), format="turtle")
        client.declare_stream(S, name="s", timing=[EX + "speed"], batch_ms=100)
        query = client.register(ROWS, name="rows", topic=f"{PREFIX}.results.rows")
        producer.push("s", f"<{EX}a> <{EX}speed> 5 .", 1_500, format="turtle")
        producer.push("s", b"not RDF", 1_600)
        producer.advance("s", 4_000)
        until(lambda: labels(query) == ["A"], cluster)
        until(client.dead_letters, cluster)
        pid = cluster.services["adaptor-0"].process.pid
        exposed = [Path(f"/proc/{pid}/{name}").read_bytes() for name in ("cmdline", "environ")]
        until(lambda: not unused(guarded), cluster)
        denied = {d for d in guarded.decisions() if d.outcome == "Denied" and d.user == user(guarded)}
    assert {d for d in denied if d.request not in PROBES and (d.kind, d.name) != ("Group", "-")} == set()
    exposed += [path.read_bytes() for path in (tmp_path / "c").rglob("*") if path.is_file()]
    assert not any(PASSWORD.encode() in each for each in exposed)


def user(broker):
    return f"User:{broker.user(Principal.spark_adaptor)}"


def unused(broker):
    """The ACLs of the adaptor that no request has used."""
    own = [
        d for d in broker.decisions() if (d.outcome, d.user) == ("Allowed", user(broker)) and d.request != "Metadata"
    ]
    rare = {(operation, name.removeprefix("guarded.")) for service, operation, name in RARE if service == "adaptor"}
    return {
        (operation, acl.name)
        for acl in required_acls(Principal.spark_adaptor, CLUSTER)
        for operation in acl.operations
        if (operation, acl.name.removeprefix(f"{PREFIX}.")) not in rare
        and not any(d.operation.replace("_", "") == operation.upper() and acl.covers(d.name) for d in own)
    }


def until(condition, cluster):
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        cluster.watch()
        time.sleep(0.1)
