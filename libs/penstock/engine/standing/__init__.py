"""Standing queries: registration, evaluation, and the groups, cohorts and members into which queries are arranged."""
