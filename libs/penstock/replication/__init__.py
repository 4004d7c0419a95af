"""Replication: from a totally ordered log to a replica. Sequencer, state machine, history, retention, cluster
membership.
"""
