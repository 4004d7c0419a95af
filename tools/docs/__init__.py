"""What `make docs` runs besides MkDocs: generated reference pages, and diagrams."""
