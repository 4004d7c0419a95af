"""The SPARQL functions.

`signatures` lists their names and numbers of arguments. `text_functions` implements the functions that the native core
calls in Python. `xpath_regex` compiles regular expressions for these functions.
"""
