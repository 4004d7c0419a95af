"""What runs on Spark: the bulk load and the stream adaptor. Sessions, files of any Hadoop file system, what tasks run.

- `bulk_load`: the stages of a load; `sources`, `parsing`, `numbering`, `edges`, `staging`
- `stream_adaptor`: the driver's part of the adaptor; `stream_task`, what its tasks do
- `session`, `java`, `hadoop`, `task`, `failures`: for both

Tasks call the native kernels on whole Arrow columns. The embedded engine needs nothing of this package; pyspark comes
with the extra `spark`. Elsewhere: `penstock.engine.intake.bulk_intake` stores a prepared load,
`penstock.ingest.event_adapter` handles events in every adaptor, `penstock.services.adaptor.spark` is the process.
"""
