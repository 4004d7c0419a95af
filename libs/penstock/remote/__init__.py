"""Reading other nodes' shards and slices one-sidedly: in place, over TCP, over RDMA (ADR 15).

Here: how a node offers regions (`Server`) and how an engine reaches a node (`connect`). The transports themselves are
native (native/src/dataplane). What the bytes mean is not known here: that is the store's and the streams' matter.
"""

from penstock.remote.connecting import PlaneLimits, Transport, connect
from penstock.remote.region_server import RegionKind, Server

__all__ = ["PlaneLimits", "RegionKind", "Server", "Transport", "connect"]
