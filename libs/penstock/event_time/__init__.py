"""Event time: grids of instants, watermarks and lateness, units of time, gaps. Pure functions and values."""
