"""Helpers of several test suites: finding shared data, a brute-force oracle of docs/semantics.md, comparing answers."""
