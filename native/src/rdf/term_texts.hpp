// The texts of term ids, whichever object knows them.
#pragma once

#include <span>
#include <string>

#include "rdf/term.hpp"

namespace penstock {

class TermTexts {
public:
    TermTexts() = default;
    TermTexts(const TermTexts&) = delete;
    TermTexts& operator=(const TermTexts&) = delete;
    virtual ~TermTexts() = default;

    /// The text of an id, which must not be kUnbound. It points into `scratch` or into memory that outlives the
    /// caller's use. DataError for an id that does not exist.
    virtual TermView view(TermId id, std::string& scratch) const = 0;
    /// Hints that a call of view(id) will follow. The first hint prefetches the entry of the id. The second hint, which
    /// must be called some terms later, prefetches the text.
    virtual void prefetch_entry(TermId) const {}
    virtual void prefetch_text(TermId) const {}
    /// Whether another service has terms that are missing here, so that require() must precede view().
    virtual bool partial() const = 0;
    /// Ensures that view() finds these ids; fetches those that are missing.
    virtual void require(std::span<const TermId> ids) const = 0;
};

}  // namespace penstock
