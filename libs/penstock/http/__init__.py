"""HTTP routes: the embedded engine's API (`embedded`, with live results), and the SPARQL 1.1 Protocol.

`penstock serve` and `penstock.runtime` serve these routes; the runtime adds health and metrics.
"""
