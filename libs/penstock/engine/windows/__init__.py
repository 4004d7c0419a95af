"""Windows: their contents, the schedule of evaluations, and the release of slices."""
