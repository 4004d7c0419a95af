"""Remote reads of the shards of stores, over shared memory, TCP or RDMA (ADR 15, 37, 64).

- data plane: `region_server` publishes regions, `connecting` opens connections to read them
- control: authenticated messages (`control_connection`, `control_server`) for leases and forks
- client, in the engine: the stored graph (`stores_graph`), its leases (`store_links`), fork-join (`fork_join`)
- server, in the store: `fragments` executes the fragments of plans

The transports are native (native/src/dataplane). The interpretation of the bytes is also native (native/src/remote).
"""

from penstock.remote.connecting import PlaneLimits, Transport, connect
from penstock.remote.region_server import RegionKind, Server

__all__ = ["PlaneLimits", "RegionKind", "Server", "Transport", "connect"]
