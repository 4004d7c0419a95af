"""HTTP: the API of the embedded engine (`embedded`, with live results), the SPARQL 1.1 Protocol, the SPARQL 1.1 Graph
Store HTTP Protocol, the web server with its limits, and `security`.

`penstock serve` serves `embedded`. The services of a cluster have routes of their own and use the other modules.
"""
