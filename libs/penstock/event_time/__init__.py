"""Event time: grids of instants, watermarks and lateness, time units, and gaps. Pure functions and values."""
