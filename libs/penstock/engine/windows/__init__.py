"""Windows: what each one holds, when evaluations are due, and which slices may go."""
