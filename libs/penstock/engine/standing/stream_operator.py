"""The stream operators RSTREAM, ISTREAM and DSTREAM (CQL; docs/semantics.md §5), and the option `changes`. This module
applies an operator or the option to the rows of a whole cohort at once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from penstock.engine.answers.answer_versions import difference
from penstock.engine.answers.rows import Rows
from penstock.query.ir import RelationToStream
from penstock.query.resolve import error_at

if TYPE_CHECKING:
    from penstock.engine.answers.rows import Changes
    from penstock.query.ir import ContinuousQuery


def as_stream(operator: RelationToStream, now: Rows, before: Rows | None) -> Rows:
    """Return the rows that the operator reports. `now` and `before` are the rows of this instant and of the previous
    instant. Both must be results of `Rows.published()`, because only then can the ids of computed terms be compared.

    For each member, ISTREAM and DSTREAM report multiset differences. For a CONSTRUCT, the differences are set
    differences, because the triples are distinct.
    """
    if operator is RelationToStream.RSTREAM:
        return now
    if operator is RelationToStream.ISTREAM:
        taken = difference(now, before)
    elif before is None:
        return now.take(np.empty(0, np.int64))
    else:
        taken = difference(before, now)
    decoder = now.decoder if before is None else now.decoder or before.decoder
    return Rows(taken.member, taken.columns, decoder)


def reported(operator: RelationToStream, changes: Changes) -> Rows:
    """Return the rows that ISTREAM or DSTREAM reports, given the changes of an answer."""
    return changes.added if operator is RelationToStream.ISTREAM else changes.removed


def with_changes(query: ContinuousQuery) -> ContinuousQuery:
    """Return the query with the option `changes`. QueryError if the option is not possible for the query."""
    message = None
    if query.publishes:
        message = "`changes` and a derived stream exclude each other: the stream has the complete answers"
    elif query.r2s is not RelationToStream.RSTREAM:
        message = (
            f"`changes` and {query.r2s.value} exclude each other: REGISTER QUERY reports what an answer gains and loses"
        )
    elif query.report_nonempty:
        message = "`changes` and REPORT NONEMPTY exclude each other: an answer that becomes empty would not be reported"
    if message is not None:
        raise error_at(query, query.at, message)
    return replace(query, changes=True)
