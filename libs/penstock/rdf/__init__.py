"""RDF input: parsers, and the conversion between rdflib terms and native terms. The parsers convert N-Triples, N-Quads,
Turtle, TriG, RDF/XML, JSON-LD and RDF Patch to columns of term ids. `entity_mutations` decodes Wikidata's mutation
stream.

Term ids, the dictionary and the N-Triples reader are native (`penstock.core._native`). The engine, not this package,
serialises results.
"""
