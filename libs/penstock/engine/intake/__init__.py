"""Input of an engine: stream declarations, events, loads into the stored graph, rejected events, idle sources."""
