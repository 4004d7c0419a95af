"""Windows: the contents of windows, triggers, the schedule of evaluations, and the release of slices and terms."""
