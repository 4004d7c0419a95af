"""The SPARQL functions.

`signatures` lists their names and numbers of arguments. `text_functions` implements the functions that the native core
delegates to Python, and `xpath_regex` compiles regular expressions for them.
"""
