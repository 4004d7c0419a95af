"""From algebra to a physical plan: join order, access paths, and correlated or independent sides of joins.

`pattern_plans`, `group_patterns` and `modifiers` plan patterns. `conditions` and `exists` plan expressions, and the
EXISTS in them. `joins` and `scans` create the nodes of joins and scans. Patterns are recursive, but imports must have
no cycles: a module that `pattern_plans` imports plans inner patterns with `PlanContext.compile`.
`quad_templates` prepares the templates of updates.

The entry point is `penstock.query.planner`. docs/plan-format.md describes plans. This package executes no queries.
"""
