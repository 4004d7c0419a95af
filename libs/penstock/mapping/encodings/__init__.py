"""Messages in binary formats (ADR 94): Avro and Protobuf, with the schema in the declaration or in a registry."""
