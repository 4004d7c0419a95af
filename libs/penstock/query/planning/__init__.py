"""From algebra to a physical plan: order of joins, access paths, correlated or independent sides.

Entry point: `penstock.query.planner`. What the plan may contain is docs/plan-format.md. Nothing here runs a query.
"""
