"""The parser: from text to a syntax tree.

`lexis` contains the lexical rules, `grammar` the LALR grammar, `builder` and `ast_nodes` the tree. `messages` and
`hints` produce the text of syntax errors. `penstock.query.translation` resolves names.
"""
