"""The front end: from a text to a physical plan. Runs at registration, never at an evaluation.

- text to syntax tree: `parser`, `grammar`, `lexis`, `builder`, `ast_nodes`; errors: `messages`, `faults`
- to the checked IR: `translate`, `translation`, `windows`, `durations`, `iri`, `checks`; `ir`, `algebra`
- against one engine: `catalogue` (what is asked of it), `resolve`, `datasets`, `templates`, `predicates`
- to a plan: `planner`, `planning`, `scope`, `walk`; `explain` draws it

`functions` and `xpath_regex` are what the core leaves to Python. Not here: operators and expressions, which are native,
and the instants at which a query runs (`penstock.engine`).
"""
