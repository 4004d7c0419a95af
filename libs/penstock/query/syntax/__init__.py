"""From a text to its syntax tree: `lexis` below the grammar, `grammar` (LALR), `builder` and `ast_nodes` for the tree.

`messages` and `hints` word the syntax errors. Names are resolved by `penstock.query.translation`, not here.
"""
