"""Windows: their contents, triggers, the schedule of evaluations, and the release of slices and terms."""
