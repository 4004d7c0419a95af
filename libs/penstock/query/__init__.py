"""The front end: from a query's text to a physical plan. Runs at registration, never at an evaluation.

- `parser`: the entry point from text to the checked IR. `syntax` has the grammar and the syntax tree, `translation`
  gives the tree its meaning, `algebra` and `ir` are the result, `text_faults` are errors with a position.
- `budget`: what one text may cost.
- `catalogue`: what the front end asks of an engine; `resolve`, `datasets`, `templates` and `predicates` use it.
- `planner`: the entry point from the IR to a physical plan. `planning` chooses operators and the order of joins;
  `explain` draws the plan.
- `functions`: the SPARQL functions, and those that the native core leaves to Python.

Not here: operators and expressions, which are native, and the instants at which a query runs (`penstock.engine`).
"""
