"""What several test suites share: finding shared data, a brute-force oracle of docs/semantics.md, comparing answers."""
