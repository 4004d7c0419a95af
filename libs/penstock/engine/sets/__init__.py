"""Query sets: one text with parameters, evaluated for all members of a table (docs/adr/0085-query-sets.md)."""
