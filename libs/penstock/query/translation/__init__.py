"""Translation from syntax to algebra, SPARQL 1.1 §18.2: terms, triples and paths, expressions, patterns, solution
modifiers.

`statements` assembles whole texts: registration, dataset, windows.
"""
