"""The library of the adaptors, which convert events to tuples of global ids (docs/architecture.md, "One event's way
in").

- `event_adapter`: convert events to tuples, for the plain and the Spark adaptor
- `event_message`: read the events of a message, and heartbeats
- `declared_streams`: read the declared streams from the control topic
- `predicate_filter`: discard tuples that no query reads
- `refused_records`: write records for late and invalid events

The processes are in services/adaptor and services/dispatcher.
"""
