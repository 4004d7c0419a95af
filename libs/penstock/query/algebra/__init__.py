"""The SPARQL algebra (SPARQL 1.1 §18).

`tree` has the terms, expressions and patterns, `walk` traverses and rebuilds them, `scope` derives which variables
occur and which are bound, and `graph_use` how a pattern depends on the active graph.
"""
