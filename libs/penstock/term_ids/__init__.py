"""Global term ids: the client of the dictionary service, its cache, and the re-encoding of columns."""
