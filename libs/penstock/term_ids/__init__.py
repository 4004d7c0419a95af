"""Global term ids, which the dictionary service of a cluster assigns. The package contains the client of this service,
caches of global ids, and the conversion of local ids in columns to global ids.
"""
