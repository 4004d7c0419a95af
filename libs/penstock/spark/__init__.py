"""Spark applications: the bulk load and the stream adaptor, with sessions, Hadoop file access and task functions.

- `bulk_load`: the stages of a load; its parts are `sources`, `statement_parsing`, `numbering`, `edges`, `staging` and
  `manifest`
- `stream_adaptor`: the driver of the stream adaptor; `stream_task`: its tasks
- `session`, `java_home`, `hadoop`, `task`, `failures`: shared by both applications

Tasks call the native kernels on whole Arrow columns. The embedded engine does not need this package; pyspark comes with
the extra `spark`. `penstock.engine.intake.bulk_intake` stores a prepared load, `penstock.ingest.event_adapter` converts
events in every adaptor, and `penstock.services.adaptor.spark` is the stream adaptor's process.
"""
