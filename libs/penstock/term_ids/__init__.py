"""Global term ids, which the dictionary service of a cluster assigns: its client, caches of its ids, and the conversion
of columns of other ids.
"""
