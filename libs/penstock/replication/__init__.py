"""Replication: a process builds its replica from the totally ordered log. The package contains the sequencer, the state
machine, the history, retention and cluster membership.
"""
