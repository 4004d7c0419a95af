"""The Kafka ACLs that each service and user of a cluster needs: the only definition of them (`penstock acls`)."""

from penstock.acls.required import Acl, Cluster, Principal, required_acls, used_topics

__all__ = ["Acl", "Cluster", "Principal", "required_acls", "used_topics"]
