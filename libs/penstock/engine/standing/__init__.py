"""Standing queries: members, groups and cohorts, registration and evaluation."""
