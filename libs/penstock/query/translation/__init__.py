"""Translation from syntax to algebra, SPARQL 1.1 §18.2: terms, triples and paths, expressions, patterns, and solution
modifiers.

`statements` translates whole texts, with registration, dataset and windows.
"""
