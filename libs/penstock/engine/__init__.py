"""The embedded engine: declarations, registration, triggers, evaluation, answers, checkpoints.

`engine` is the face; `runtime` puts the parts together. Input: `declaration`, `streams`, `events`, `intake`, `refused`.
Queries: `registry`, `groups`, `cohorts`, `membership`, `planning`, `standing`. Time: `grid`, `pace`, `schedule`,
`windows`, `releasing`. Evaluation: `firing`, `evaluate`, `difference`, `derived`, `oneshot`. Answers: `blocks`,
`answers`, `formats`, `terms`. Keeping: `checkpoint`, `directory`, `forgetting`, `storing`.

Not here: what queries mean (`penstock.query`), and what touches every tuple (the core, `penstock.store._native`).
"""

from penstock.engine.answers import Solutions
from penstock.engine.blocks import Evaluation
from penstock.engine.declaration import Declaration
from penstock.engine.engine import Engine
from penstock.engine.limits import Limits
from penstock.engine.refused import DeadLetter, LateEvent
from penstock.engine.standing import Gap, Query

__all__ = [
    "DeadLetter",
    "Declaration",
    "Engine",
    "Evaluation",
    "Gap",
    "LateEvent",
    "Limits",
    "Query",
    "Solutions",
]
