"""The Python interface of the native core: `_native` (built from native/, types in _native.pyi) and Arrow conversion.

The core contains everything that touches each tuple or binding: term ids, dictionary, stored graph, streams, windows,
executor and data plane. Query semantics are in `penstock.query`, scheduling in `penstock.engine`.
"""
