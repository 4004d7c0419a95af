"""The Python interface of the native core. It consists of `_native` (built from native/, with types in _native.pyi) and
of the conversion from and to Arrow.

The core contains all code that processes single tuples or bindings: term ids, dictionary, stored graph, streams,
windows, executor and data plane. Query semantics are in `penstock.query`, scheduling in `penstock.engine`.
"""
