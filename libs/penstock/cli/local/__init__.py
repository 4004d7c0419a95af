"""Commands of the embedded engine: `demo`, `run`, `load`, `query`, `explain` and `serve`."""
