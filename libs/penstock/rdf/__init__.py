"""RDF input: conversion between rdflib terms and native terms, and parsers of N-Triples, N-Quads, Turtle, TriG, RDF/XML
and JSON-LD into columns of term ids.

Term ids, the dictionary and the N-Triples reader are native (`penstock.core._native`). The engine, not this package,
serialises results.
"""
