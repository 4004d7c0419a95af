"""The query front end: from a query's text to a physical plan. It runs at registration, not at evaluations.

- `parser`: the entry point from text to the checked IR. `syntax` has the grammar and the syntax tree, `translation`
converts the tree to `algebra` and `ir`; `text_faults` are errors with a position.
- `budget`: limits on the cost of a text.
- `catalogue`: the front end's interface to an engine, used by `resolve`, `datasets`, `templates` and `predicates`.
- `planner`: the entry point from the IR to a physical plan. `planning` chooses operators and join order; `plan_tree`
displays the plan.
- `functions`: the SPARQL functions, and those that the native core delegates to Python.

Operators and expressions are native; `penstock.engine` schedules evaluations.
"""
