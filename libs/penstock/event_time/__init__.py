"""Event time: grids of instants, watermarks and lateness, time units, and gaps. Contains only pure functions and
immutable values.
"""
