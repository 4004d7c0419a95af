"""Routes: an embedded engine's verbs (`embedded`, with live answers), a coordinator's, and the SPARQL 1.1 Protocol.

Not here: whoever serves them, `penstock serve` or, beside health and metrics, `penstock.runtime`.
"""
