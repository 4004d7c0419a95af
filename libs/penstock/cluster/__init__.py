"""The services' shared core: what the cluster's processes do with the records of the log (DESIGN §2, §8).

- the common order: `spine` (partitions to one sequence), `replica` (the sequence to streams and stored graph),
  `checkpoint`, `commands`
- terms: `dictionary` (the service), `terms` (ids of the cluster to ids of a process), `rpc`
- standing queries: `query_engine`, `buckets`, `progress`
- who does what: `coordinator`, `placement`, `election`, `registrar`
- stored data: `store_node`

Each service is a class whose `step()` reads the log, changes its state and writes in one transaction: without threads
and sleeps of its own, so that the simulation can run many of them in one process. The processes around them, with
settings, HTTP and signals, are in services/.
"""
