"""Standing queries: members, groups and cohorts, their registration and their evaluation."""
