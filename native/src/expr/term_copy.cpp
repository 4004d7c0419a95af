#include "expr/term_copy.hpp"

#include "expr/compare.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock {

TermCopy::TermCopy(TermId id, const LocalTerms& terms) : id_(id) {
    std::string scratch;
    const TermView term = id == kUnbound ? TermView{} : terms.view(id, scratch);
    kind_ = term.kind;
    lexical_ = term.lexical;
    datatype_ = term.datatype;
    lang_ = term.lang;
}

int value_compare(TermId a, const TermCopy& b, const LocalTerms& terms) {
    if (tag_of(a) == Tag::Integer && tag_of(b.id()) == Tag::Integer)
        return (integer_value(a) > integer_value(b.id())) - (integer_value(a) < integer_value(b.id()));
    std::string scratch;
    return expr::value_order(expr::value_of(a, terms, scratch), expr::value_of(b.id(), b.view()));
}

int order_compare(TermId a, const TermCopy& b, const LocalTerms& terms) {
    const int order = value_compare(a, b, terms);
    if (order != 0 || a == kUnbound || b.id() == kUnbound) return order;
    std::string scratch;
    return expr::spelling_order(terms.view(a, scratch), b.view());
}

}  // namespace penstock
