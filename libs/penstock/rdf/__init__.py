"""RDF in: terms between rdflib and the core, documents in all the W3C formats straight to columns of term ids.

Ids themselves, the dictionary and the N-Triples reader are native (`penstock.core._native`). Writing answers is the
engine's business, not this package's.
"""
