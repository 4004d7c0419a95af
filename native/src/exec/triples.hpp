// Answers that consist of triples: CONSTRUCT and DESCRIBE return each triple of a member once.
#pragma once

#include <vector>

#include "exec/collected.hpp"
#include "exec/key_table.hpp"
#include "exec/operator.hpp"

namespace penstock::exec {

/// A set of triples per member, pushed in order of first appearance.
class TripleSet {
public:
    /// Output columns: the member if there is one, then s, p, o.
    void configure(const Schema& schema) { schema.shape(buffer_); }
    void begin() { seen_.reset(buffer_.columns.size()); }
    void add(Run& run, TermId member, TermId s, TermId p, TermId o);
    /// Pushes the triples that are new since the last call.
    bool flush(Run& run, Sink& out);
    void release(Run& run) {
        seen_.release(run.budget());
        pushed_ = 0;
    }

private:
    KeyTable seen_;
    std::size_t pushed_ = 0;
    Table buffer_;
};

/// IRI, blank node or literal. Also for terms computed by the evaluation.
Kind kind_of(TermId id, const LocalTerms& terms);

}  // namespace penstock::exec
