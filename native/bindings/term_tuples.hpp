// Terms as Python sees them: tuples (kind, lexical, datatype, lang), kinds as in _native.pyi.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rdf/dictionary.hpp"

namespace penstock {

/// Throws DataError for a kind that is none.
TermView term_view(int kind, std::string_view lexical, std::string_view datatype, std::string_view lang);

/// Throws DataError where an IRI, a datatype or a language tag is not well-formed. The dictionary itself does not look.
void check_term(const TermView& term);

/// The tuple of a term; None for Kind::Unbound.
nanobind::object term_tuple(const TermView& term);

/// A list with the tuple, or None for 0, of each id. Over a partial dictionary terms that are not here are fetched.
nanobind::list decode(const LocalTerms& terms, std::span<const TermId> ids);

/// A sequence of tuples, its texts viewed in place; holds the Python objects alive. Made and destroyed with the GIL.
class TermTuples {
public:
    explicit TermTuples(const nanobind::sequence& terms);
    std::size_t size() const { return views_.size(); }
    std::span<const TermView> views() const { return views_; }
    /// Needs no GIL. Blank nodes: one fresh node per label.
    void intern(Dictionary& dictionary, TermId* out) const;

private:
    nanobind::tuple tuples_;
    std::vector<TermView> views_;
};

}  // namespace penstock
