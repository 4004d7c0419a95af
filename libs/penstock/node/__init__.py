"""Store nodes: processes that own shards in shared memory, and what an engine needs to work over them (ADR 16).

Here: the node itself (`StoreNode`), its control connection (writes and leases; `serving`, `control`), and the engine's
side (`Nodes`: finds nodes, keeps leases, sends commits and batches, and gives the engine its stored graph and streams).
Not here: how reads travel (`penstock.remote`) and what they mean (the core, native/src/remote).

A node is started by `python -m penstock.node --help`.
"""

from penstock.node.cluster import Nodes
from penstock.node.store_node import StoreNode
from penstock.remote.control_connection import Address

__all__ = ["Address", "Nodes", "StoreNode"]
