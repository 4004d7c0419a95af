"""`penstock.Client`: access to a cluster, with most methods of the embedded engine (docs/api.md).

The client produces events to Kafka. The events are durable when `push` returns. The client sends declarations,
registrations and stored data to the coordinator, and one-shot queries to a query engine (`service_requests`). The
client consumes evaluations from the results topics (`results`), and returns answers in the types of the embedded engine
(`answers`).
"""

from penstock.client.client import Client
from penstock.client.cluster_sets import ClusterQuerySet
from penstock.client.cluster_status import ClusterQueryStatus
from penstock.client.results import Answered, ClusterEvaluation, ClusterQuery

__all__ = ["Answered", "Client", "ClusterEvaluation", "ClusterQuery", "ClusterQuerySet", "ClusterQueryStatus"]
