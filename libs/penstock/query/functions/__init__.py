"""The SPARQL functions.

`signatures` lists their names and numbers of arguments, `text_functions` are those that the native core leaves to
Python, `xpath_regex` compiles their regular expressions.
"""
