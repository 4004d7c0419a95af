"""The SPARQL functions.

`signatures` lists their names and argument counts, `text_functions` implements those that the native core delegates to
Python, `xpath_regex` compiles their regular expressions.
"""
