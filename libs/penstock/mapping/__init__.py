"""Mappings from JSON, CSV, Avro and Protobuf messages to triples (ADR 83).

- `rml`, `term_maps`, `mapping_graph`: compile RML to a program
- `construct`: compile CONSTRUCT queries over messages to a program
- `program`: the compiled form
- `native_program`: pass a program to the native executor (ADR 84)
- `executor`, `term_makers`, `json_path`: run a program in Python, for the records that the native executor does not map
- `message_records`: parse messages to JSON values and CSV rows
- `files`: files in place of messages
- `encodings`: messages in binary formats, which become JSON texts (ADR 94)
- `mapping_limits`: limits on mappings and messages
"""
