// The texts of term ids, whichever object knows them.
#pragma once

#include <algorithm>
#include <span>
#include <string>

#include "rdf/term.hpp"

namespace penstock {

class TermRecord;

class TermTexts {
public:
    TermTexts() = default;
    TermTexts(const TermTexts&) = delete;
    TermTexts& operator=(const TermTexts&) = delete;
    virtual ~TermTexts() = default;

    /// The text of an id, which must not be kUnbound. It points into `scratch` or into memory that outlives the
    /// caller's use. DataError for an id that does not exist.
    virtual TermView view(TermId id, std::string& scratch) const = 0;
    /// For many terms: sets out[i] to the record of ids[i], whose text is read ahead. Null if only view() knows the
    /// text, or if the id is kUnbound or does not exist. A record of another kind than the id says stands for a wrong
    /// id.
    virtual void records(std::span<const TermId> ids, const TermRecord** out) const {
        std::fill_n(out, ids.size(), nullptr);
    }
    /// Whether another service has terms that are missing here, so that require() must precede view().
    virtual bool partial() const = 0;
    /// Ensures that view() finds these ids; fetches those that are missing.
    virtual void require(std::span<const TermId> ids) const = 0;
};

}  // namespace penstock
