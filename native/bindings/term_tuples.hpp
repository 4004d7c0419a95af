// The Python representation of terms: tuples (kind, lexical, datatype, lang), with kinds as in _native.pyi.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rdf/dictionary.hpp"

namespace penstock {

/// Throws DataError for an unknown kind.
TermView term_view(int kind, std::string_view lexical, std::string_view datatype, std::string_view lang);

/// Throws DataError if an IRI, a datatype or a language tag is malformed. The dictionary itself does not check.
void check_term(const TermView& term);

/// The tuple of a term; None for Kind::Unbound.
nanobind::object term_tuple(const TermView& term);

/// A list with the tuple of each id, or None for 0. Over a partial dictionary it fetches missing terms.
nanobind::list decode(const TermTexts& terms, std::span<const TermId> ids);

/// A sequence of tuples whose texts are viewed in place; owns references to the Python objects. Constructed and
/// destroyed with the GIL.
class TermTuples {
public:
    explicit TermTuples(const nanobind::sequence& terms);
    std::size_t size() const { return views_.size(); }
    std::span<const TermView> views() const { return views_; }
    /// Does not require the GIL. Blank nodes: one fresh node per label.
    void intern(Dictionary& dictionary, TermId* out) const;

private:
    nanobind::tuple tuples_;
    std::vector<TermView> views_;
};

}  // namespace penstock
