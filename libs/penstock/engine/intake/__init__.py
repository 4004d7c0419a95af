"""Input of an engine: stream declarations, events, stored data, rejected events, idle sources."""
