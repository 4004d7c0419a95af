"""Results: values, blocks that wait to be polled, the queue of each query, result formats."""
