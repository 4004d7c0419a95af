"""What several test suites share: finding shared data, a brute-force oracle of SEMANTICS.md, comparing answers."""
