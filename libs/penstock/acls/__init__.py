"""Defines the Kafka ACLs that each service and user of a cluster needs. No other module defines ACLs. `penstock acls`
prints them.
"""

from penstock.acls.required import Acl, Cluster, Principal, required_acls, used_topics

__all__ = ["Acl", "Cluster", "Principal", "required_acls", "used_topics"]
