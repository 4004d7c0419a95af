"""What plans cost, and the cheapest order of joins.

`cardinality` estimates the rows of single triples, `estimates` those of whole patterns; `join_order` chooses.
"""
