"""Reads of the shards of stores (ADR 15, 37, 64): in place, over TCP, by RDMA.

- regions: what a process offers (`Server`), and how another one reaches it (`connect`)
- control: authenticated messages (`control_connection`, `control_server`), for leases and forks
- an engine's side: the stored graph (`stores_graph`), its leases (`store_links`), fork-join (`fork_join`)
- a store's side of fork-join: `fragments`

The transports are native (native/src/dataplane), and so is the meaning of the bytes (native/src/remote).
"""

from penstock.remote.connecting import PlaneLimits, Transport, connect
from penstock.remote.region_server import RegionKind, Server

__all__ = ["PlaneLimits", "RegionKind", "Server", "Transport", "connect"]
