"""The services' shared core: what the cluster's processes do with the records of the log (docs/architecture.md).

- the common order: `spine` (partitions to one sequence), `commits` and `history` (what becomes stored, and when),
  `topics`
- who follows it: `replica` (streams and stored graph) of a `world`, `follower` and `stored_graph` (some shards),
  `load_files`; `replica_state`, `checkpoint`, `shard_checkpoints`, `saving_beside`
- terms: `dictionary`, `dictionary_node`, `known_terms` (the service), `rpc`; `terms`, `encoding` (those who ask)
- standing queries: `query_engine`, `buckets`, `progress`, `kept`, `outlet`, `told`
- stored data: `store`, `shard_store`, `leases` (the service); `stores_graph`, `store_links` (engines that read it)
- who does what: `coordinator`, `active`, `registrar`, `requests`, `status`, `wanted`, `placement`, `heartbeats`,
  `election`

Each service is a class whose `step()` reads the log, changes its state and writes in one transaction: without threads
and sleeps of its own, so that the simulation can run many of them in one process. The processes around them, with
settings, HTTP and signals, are in `penstock.services`.
"""
