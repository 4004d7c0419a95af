"""From algebra to a physical plan: order of joins, access paths, correlated or independent sides.

`pattern_plans`, `group_patterns` and `modifiers` plan patterns, `conditions` and `exists` what they test, `joins` and
`scans` the operators below. Patterns contain patterns: the lower modules plan inner ones by `PlanContext.compile`.

Entry point: `penstock.query.planner`. What the plan may contain is docs/plan-format.md. Nothing here runs a query.
"""
