"""Commands of the embedded engine: `demo`, `run`, `load`, `query`, `explain`, `serve` and `token`."""
