"""The embedded engine: declarations, registration, triggers, evaluation, results and checkpoints.

`engine` has the public class `Engine`; `runtime` combines the parts of an engine.

- `intake`: declarations, streams, event parsing, rejected events, loads into the stored graph
- `standing`: standing queries, their groups and cohorts, registration, evaluation, derived streams
- `windows`: triggers, the schedule, window contents, release of slices and terms
- `sets`: query sets
- `oneshot`: one-shot queries, updates and explanations
- `answers`: result values, blocks, queues and formats
- `checkpoint`: checkpoints, recovery, the write-ahead log and the data directory

The semantics of queries are in `penstock.query`. Code that processes every single tuple is in the native core
(`penstock.core._native`).
"""

from penstock.engine.answers.answer_values import Solutions
from penstock.engine.answers.result_blocks import Evaluation
from penstock.engine.engine import Engine
from penstock.engine.intake.arrival import PushReport
from penstock.engine.intake.declaration import Declaration
from penstock.engine.intake.graph_change import UpdateReport
from penstock.engine.intake.rejected_events import DeadLetter, LateEvent
from penstock.engine.limits import Limits
from penstock.engine.sets.query_set import QuerySet
from penstock.engine.sets.set_changes import MembersReport
from penstock.engine.sets.steps import Step
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
    "MembersReport",
    "PushReport",
    "Query",
    "QuerySet",
    "QueryStatus",
    "Solutions",
    "Step",
    "StreamWait",
    "UpdateReport",
]
