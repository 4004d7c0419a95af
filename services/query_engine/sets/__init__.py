"""Query sets of a cluster: their members from topics, the progress of their groups (ADR 92)."""
