"""`penstock.Client`: access to a cluster, with most methods of the embedded engine (docs/api.md).

The client produces events to Kafka; they are durable when `push` returns. It sends declarations, queries and stored
data to the coordinator (`service_requests`) and one-shot queries to a query engine. It consumes evaluations from the
results topics (`results`) and returns them as the embedded engine does (`answers`).
"""

from penstock.client.client import Client
from penstock.client.cluster_status import ClusterQueryStatus
from penstock.client.results import Answered, ClusterEvaluation, ClusterQuery

__all__ = ["Answered", "Client", "ClusterEvaluation", "ClusterQuery", "ClusterQueryStatus"]
