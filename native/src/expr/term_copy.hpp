// Copies of terms that can be compared after the dictionary has dropped the terms.
#pragma once

#include <string>

#include "rdf/dictionary.hpp"

namespace penstock {

/// A copy of a term. The id of the copied term possibly names another term by now.
class TermCopy {
public:
    TermCopy(TermId id, const LocalTerms& terms);
    TermId id() const { return id_; }
    TermView view() const { return {kind_, lexical_, datatype_, lang_}; }
    std::size_t bytes() const { return lexical_.capacity() + datatype_.capacity() + lang_.capacity(); }

private:
    TermId id_;
    Kind kind_;
    std::string lexical_, datatype_, lang_;
};

/// value_compare and order_compare of a term of the dictionary with a copy.
int value_compare(TermId a, const TermCopy& b, const LocalTerms& terms);
int order_compare(TermId a, const TermCopy& b, const LocalTerms& terms);

}  // namespace penstock
