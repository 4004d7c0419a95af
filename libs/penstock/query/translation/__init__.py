"""From syntax to algebra, SPARQL 1.1 §18.2: terms, triples and paths, expressions, patterns, solution modifiers.

What a whole text means (registration, dataset, windows) is put together in `statements`, not here.
"""
