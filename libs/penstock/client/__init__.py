"""`penstock.Client`: the embedded engine's verbs against a cluster (docs/api.md). Not here: how services work.

Events go to Kafka, durable when `push` returns; declarations, queries and stored data to the coordinator (`asking`);
one-shot queries to a query engine; evaluations come from the results topics (`results`), with the embedded engine's
answers (`answers`).
"""

from penstock.client.client import Client
from penstock.client.results import Answered, ClusterEvaluation, ClusterQuery

__all__ = ["Answered", "Client", "ClusterEvaluation", "ClusterQuery"]
