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
    /// Hints, in this order and some terms apart, that view(id) will follow: they read ahead its entry, and its text.
    virtual void prefetch_entry(TermId) const {}
    virtual void prefetch_text(TermId) const {}
    /// Whether another service has terms that are missing here, so that require() must precede view().
    virtual bool partial() const = 0;
    /// Ensures that view() finds these ids; fetches those that are missing.
    virtual void require(std::span<const TermId> ids) const = 0;
};

}  // namespace penstock
