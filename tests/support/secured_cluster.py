"""A cluster with all security: HTTPS with tokens, mutual TLS between its processes, SASL over TLS to the broker.

All secrets are in files. The files are below one directory that other users can enter, so that only the modes that the
software sets protect what is in it.
"""

from __future__ import annotations

import io
import ssl
import time
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

import pytest

from penstock import Client
from penstock.acls import Cluster, Principal
from penstock.cli.app import main
from penstock.cli.cluster.local_cluster import LocalCluster
from support.authorizing import PASSWORD, AuthorizingBroker, with_principals

if TYPE_CHECKING:
    from collections.abc import Iterator

PREFIX = "exposed"
HOST = "127.0.0.1"
_READY_S = 180.0


class SecuredCluster(LocalCluster):
    """The services. The parent of their directory has the directory `certificates` and the file `tokens`."""

    token = ""

    @property
    def base(self) -> Path:
        """The directory that contains all files of the cluster and its broker."""
        return self.directory.parent

    def _add(self, name: str, module: str, settings: dict[str, str]) -> None:
        ca, certificate, key = certified(self.base, name)
        own = {
            "PENSTOCK_TLS_CA": ca,
            "PENSTOCK_TLS_CERTIFICATE": certificate,
            "PENSTOCK_TLS_KEY": key,
            "PENSTOCK_HTTP_CERTIFICATE": certificate,
            "PENSTOCK_HTTP_KEY": key,
            "PENSTOCK_HTTP_ENGINES_CA": ca,
            "PENSTOCK_HTTP_TOKENS_FILE": str(self.base / "tokens"),
        }
        encrypted = {key: value.replace("grpc://", "grpc+tls://") for key, value in settings.items()}
        super()._add(name, module, encrypted | own)

    def get(self, url: str) -> bytes:
        """Return a page, with the token."""
        trust = ssl.create_default_context(cafile=str(self.base / "certificates" / "ca.crt"))
        asked = Request(url, headers={"authorization": f"Bearer {self.token}"})
        with urlopen(asked, timeout=10, context=trust) as answer:
            found: bytes = answer.read()
            return found

    def _wait_until_ready(self) -> None:
        self.url = self.url.replace("http://", "https://")
        deadline = time.monotonic() + _READY_S
        while True:
            try:
                self.get(f"{self.url}/streams")
            except OSError:
                assert time.monotonic() < deadline, {
                    name: self.supervisor.last_line(each) for name, each in self.services.items()
                }
            else:
                return
            self.watch()
            time.sleep(0.2)

    def client(self, broker: AuthorizingBroker, principal: Principal) -> Client:
        """Return a client with the token and the Kafka user of `principal`."""
        ca, kafka = self.base / "certificates" / "ca.crt", broker.properties(principal)
        return Client(broker.bootstrap_servers, self.url, prefix=PREFIX, kafka=kafka, token=self.token, ca=ca)

    def pids(self) -> set[int]:
        """Return the process ids of the services and of their descendants."""
        parents = {int(path.name): _parent(path) for path in Path("/proc").iterdir() if path.name.isdigit()}
        found = {each.process.pid for each in self.services.values() if each.process is not None}
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return found

    def secrets(self) -> dict[str, bytes]:
        """Return each secret's text, by what it is. A key's text is one line of its file."""
        keys = {path.name: path.read_bytes().splitlines()[1] for path in (self.base / "certificates").glob("*.key")}
        shared = (self.directory / "secret").read_bytes().strip()
        return {"token": self.token.encode(), "password": PASSWORD.encode(), "shared secret": shared, **keys}


def certified(base: Path, name: str) -> tuple[str, str, str]:
    """Make a certificate. Returns the paths of CA, certificate and key."""
    folder = base / "certificates"
    _printed("certificates", str(folder), "--name", name, "--host", HOST)
    return str(folder / "ca.crt"), str(folder / f"{name}.crt"), str(folder / f"{name}.key")


def _printed(*words: str) -> str:
    with redirect_stdout(io.StringIO()) as printed:
        assert main(list(words)) == 0
    return printed.getvalue().strip()


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:  # it has ended
        return 0


@contextmanager
def secured_cluster() -> Iterator[tuple[SecuredCluster, AuthorizingBroker]]:
    """Start the broker, with the ACLs of `penstock acls`, and the cluster."""
    with TemporaryDirectory(prefix="penstock-exposed-") as directory, pytest.MonkeyPatch.context() as patching:
        base = Path(directory)
        base.chmod(0o755)
        certified(base, "broker")
        broker = AuthorizingBroker(base / "broker", PREFIX, base / "certificates")
        with_principals(patching, broker, base)
        with broker.broker:
            broker.allow_all(Cluster(PREFIX))
            made = SecuredCluster(
                broker.bootstrap_servers,
                base / "cluster",
                dictionaries=1,
                coordinators=1,
                engines=1,
                stores=1,
                prefix=PREFIX,
                shards=2,
                buckets=2,
                transport="tcp",
            )
            made.token = _printed("token", "scan", "admin", "--file", str(base / "tokens"))
            with made:
                yield made, broker


def listening_ports(pids: set[int]) -> set[int]:
    """Return the TCP ports on which processes listen, from /proc."""
    owned = set()
    for pid in pids:
        for descriptor in Path(f"/proc/{pid}/fd").iterdir():
            try:
                owned.add(str(descriptor.readlink()))
            except OSError:  # it has just been closed
                continue
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]:
            columns = line.split()
            if columns[3] == "0A" and f"socket:[{columns[9]}]" in owned:
                found.add(int(columns[1].rpartition(":")[2], 16))
    return found
