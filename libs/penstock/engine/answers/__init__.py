"""Results: values, pending result blocks, the queue of each query, and result formats."""
