"""The extensions of MkDocs that `make docs` uses: generated reference pages, and diagrams."""
