"""From a totally ordered log to a replica: sequencer, state machine, history, retention, membership of the cluster."""
