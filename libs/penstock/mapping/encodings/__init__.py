"""Binary encodings of messages that mappings read (ADR 94): Avro, with the schema in the declaration or in a registry."""
