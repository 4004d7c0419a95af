"""RDF input: conversion between rdflib terms and native terms, and parsers for all W3C formats into columns of term
ids.

Term ids, the dictionary and the N-Triples reader are native (`penstock.core._native`). The engine, not this package,
serialises results.
"""
