"""Costs of plans, and the cheapest join order.

`cardinality` estimates the rows of single triples, `estimates` those of whole patterns; `join_order` chooses.
"""
