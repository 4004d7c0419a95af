"""Commands of the embedded engine: `demo`, `run`, `load`, `query`, `update`, `explain`, `serve`, `map` and `token`."""
