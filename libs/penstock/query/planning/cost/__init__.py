"""Costs of plans, and the cheapest join order.

`cardinality` estimates the rows of single triple patterns. `estimates` estimates the rows of whole patterns.
`join_order` chooses the order. `placement` chooses between execution in place and fork-join.
"""
