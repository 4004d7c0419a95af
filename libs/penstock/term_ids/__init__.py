"""Global term ids, which the dictionary service of a cluster assigns: the client of this service, caches of global ids,
and the conversion of columns of local ids to global ids.
"""
