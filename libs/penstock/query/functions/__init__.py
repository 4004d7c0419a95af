"""The SPARQL functions.

`signatures` lists the names and numbers of arguments of the functions. `text_functions` implements the functions that
the native core calls in Python. `xpath_regex` compiles regular expressions for these functions.
"""
