"""From users' events to closed batches: what the adaptor and the dispatcher do (docs/architecture.md, "A cluster").

- `dispatcher`: event time of all streams; `stream_time` (one stream), `open_batches`, `outputs` (records)
- `adapting`: events to tuples, for every adaptor; `message` (format, time), `outgoing` (ids of the cluster)
- `adaptor`: the plain adaptor, which reads and writes the log by itself
- `declared`: the streams in force, as the coordinator's log says

Each is a class whose `step()` reads the log, changes its state and writes: without threads and sleeps of its own, so
that the simulation can run it. Not here: the processes around them, in services/.
"""
