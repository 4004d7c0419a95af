"""The native core's face: `_native` (built from native/, types in _native.pyi), and what turns its columns to Arrow.

Here lies what touches every tuple or every binding: term ids, dictionary, stored graph, streams, windows, executor,
data plane. Not here: what a query means (`penstock.query`) and when it runs (`penstock.engine`).
"""
