"""Answers as records in Avro with the wire format of schema registries (docs/kafka.md, ADR 106).

`row_schema` derives the schema of a query's records. `row_records` writes records.
"""
