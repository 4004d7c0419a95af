"""The query front end: from a query's text to a physical plan. The front end runs when a standing query is registered,
and when a one-shot query is executed. The front end does not run at each evaluation of a standing query.

- `parser`: the entry point from text to the checked IR. `syntax` has the grammar and the syntax tree, `translation`
converts the tree to `algebra` and `ir`; `text_faults` defines errors with a position in the text.
- `budget`: limits on the cost of a text.
- `catalogue`: the front end's interface to an engine, used by `resolve`, `datasets`, `planner` and `planning`.
- `planner`: the entry point from the IR to a physical plan. `planning` chooses operators and join order; `plan_tree`
displays the plan.
- `templates` and `set_templates`: queries with parameters in place of constants. `normalized_text` and `prepared`: two
texts that differ only in constants share one plan.
- `functions`: the signatures of the SPARQL functions, and the Python implementations of some functions. The native core
calls these implementations.

The native core executes plans; `penstock.engine` schedules evaluations.
"""
