"""Library of the adaptors: from users' events to tuples of global ids (docs/architecture.md, "One event's way in").

- `event_adapter`: converts events to tuples, for the plain and the Spark adaptor
- `event_message`: format, time and heartbeats of an event message
- `declared_streams`: the declared streams, from the control topic
- `predicate_filter`: discards tuples that no query reads
- `refused_records`: records of late and invalid events

The processes are in services/adaptor and services/dispatcher.
"""
