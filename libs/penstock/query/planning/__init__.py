"""From algebra to a physical plan: join order, access paths, correlated or independent sides of joins.

`pattern_plans`, `group_patterns` and `modifiers` plan patterns, `conditions` and `exists` plan expressions and the
EXISTS inside them, `joins` and `scans` create the nodes of joins and scans. Patterns contain patterns, but imports have
no cycles: a module that `pattern_plans` imports plans inner patterns with `PlanContext.compile`.

Entry point: `penstock.query.planner`. docs/plan-format.md describes plans. Nothing here runs a query.
"""
