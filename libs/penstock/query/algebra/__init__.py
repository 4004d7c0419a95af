"""The SPARQL algebra (SPARQL 1.1 §18).

`tree` has the terms, expressions and patterns, `walk` traverses and rebuilds them, `scope` determines which variables
occur and which are bound. `graph_use` determines how a pattern depends on the active graph.
"""
