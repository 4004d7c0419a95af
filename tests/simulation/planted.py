"""An engine with a bug on purpose: it commits how far it has come before the effect of that, the results."""

from __future__ import annotations

from penstock.cluster.query_engine import QueryEngine


class ForgetfulEngine(QueryEngine):
    """Two transactions in place of one: progress, then results."""

    def _commit(self) -> bool:
        held = {bucket.number: bucket.pending for bucket in self.buckets.values() if bucket.pending}
        for bucket in self.buckets.values():
            bucket.pending = []
        done = super()._commit()
        for number, records in held.items():
            if number in self.buckets:
                self.buckets[number].writer.commit(records)
        return done
