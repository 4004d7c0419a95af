"""Entailment by rewriting: patterns over the entailed graph become patterns over asserted triples (ADR 93)."""
