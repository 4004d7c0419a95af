"""The input of an engine: declarations of streams, events, loads into the stored graph, rejected events and idle
sources.
"""
