"""Replication: how a process builds its replica from the totally ordered log. Sequencer, state machine, history,
retention and cluster membership.
"""
