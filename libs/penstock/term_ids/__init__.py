"""Ids of terms in a cluster: the client of the dictionary, its cache, and re-encoding of columns."""
