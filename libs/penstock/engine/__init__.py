"""The embedded engine: declarations, registration, triggers, evaluation, answers, checkpoints.

`engine` is the face, `runtime` puts the parts together.

- input: `declaration`, `streams`, `events`, `intake`, `refused`, `storing`
- queries: `registry`, `groups`, `cohorts`, `member`, `membership`, `planning`, `explaining`
- time: `grid`, `pace`, `schedule`, `windows`, `releasing`
- evaluation: `firing`, `evaluate`, `difference`, `derived`, `oneshot`
- answers: `blocks`, `inbox`, `standing`, `answers`, `formats`
- keeping: `checkpoint`, `saving`, `restoring`, `arrays`, `directory`, `forgetting`

Not here: what queries mean (`penstock.query`), and what touches every tuple (the core, `penstock.core._native`).
"""

from penstock.engine.answers.answer_values import Solutions
from penstock.engine.answers.result_blocks import Evaluation
from penstock.engine.engine import Engine
from penstock.engine.intake.arrival import PushReport
from penstock.engine.intake.declaration import Declaration
from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
from penstock.engine.limits import Limits
from penstock.engine.standing.query_status import QueryStatus, StreamWait
from penstock.engine.standing.standing_query import Query
from penstock.event_time.gaps import Gap

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
