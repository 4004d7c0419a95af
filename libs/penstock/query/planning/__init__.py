"""From algebra to a physical plan: join order, access paths, and correlated or independent sides of joins.

`pattern_plans`, `group_patterns` and `modifiers` plan patterns. `conditions` plans expressions, and `exists` plans the
EXISTS in expressions. `joins` and `scans` create the nodes of joins and scans. Patterns are recursive, but imports must
have no cycles. The modules that `pattern_plans` imports therefore plan inner patterns with `PlanContext.compile`.
`quad_templates` prepares the templates of updates.

The entry point is `penstock.query.planner`. docs/plan-format.md describes plans. This package executes no queries.
"""
