"""The embedded engine: declarations, registration, triggers, evaluation, answers, checkpoints.

`engine` is the face, `runtime` puts the parts together.

- input: `declaration`, `streams`, `events`, `intake`, `refused`, `storing`
- queries: `registry`, `groups`, `cohorts`, `member`, `membership`, `planning`, `explaining`
- time: `grid`, `pace`, `schedule`, `windows`, `releasing`
- evaluation: `firing`, `evaluate`, `difference`, `derived`, `oneshot`
- answers: `blocks`, `inbox`, `standing`, `answers`, `formats`
- keeping: `checkpoint`, `saving`, `restoring`, `arrays`, `directory`, `forgetting`

Not here: what queries mean (`penstock.query`), and what touches every tuple (the core, `penstock.store._native`).
"""

from penstock.engine.answers import Solutions
from penstock.engine.blocks import Evaluation
from penstock.engine.declaration import Declaration
from penstock.engine.engine import Engine
from penstock.engine.gaps import Gap
from penstock.engine.intake import PushReport
from penstock.engine.limits import Limits
from penstock.engine.refused import DeadLetter, LateEvent
from penstock.engine.standing import Query
from penstock.engine.status import QueryStatus, StreamWait

__all__ = [
    "DeadLetter",
    "Declaration",
    "Engine",
    "Evaluation",
    "Gap",
    "LateEvent",
    "Limits",
    "PushReport",
    "Query",
    "QueryStatus",
    "Solutions",
    "StreamWait",
]
