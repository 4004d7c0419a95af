#include <cmath>

#include "expr/compare.hpp"
#include "expr/expression.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock {
namespace expr {
namespace {

template <class T>
int sign(const T& a, const T& b) {
    return (a > b) - (a < b);
}

int sign(std::string_view a, std::string_view b) {
    const int order = a.compare(b);
    return (order > 0) - (order < 0);
}

/// The classes of ORDER BY, in their order.
int rank(ValueType type) {
    switch (type) {
        case ValueType::Error:
            return 0;
        case ValueType::Blank:
            return 1;
        case ValueType::Iri:
            return 2;
        case ValueType::Integer:
        case ValueType::Decimal:
        case ValueType::Float:
        case ValueType::Double:
        case ValueType::Huge:
            return 3;
        case ValueType::String:
        case ValueType::LangString:
            return 4;
        case ValueType::Boolean:
            return 5;
        case ValueType::DateTime:
            return 6;
        case ValueType::Date:
            return 7;
        case ValueType::Time:
            return 8;
        case ValueType::YearMonthDuration:
        case ValueType::DayTimeDuration:
        case ValueType::Duration:
            return 9;
        case ValueType::Malformed:
        case ValueType::Opaque:
            return 10;
    }
    return 10;
}

bool is_real(const Value& value) {
    return value.type == ValueType::Float || value.type == ValueType::Double || value.type == ValueType::Huge;
}

/// By exact value, without promotion, which is not transitive. NaN is last.
int number_order(const Value& a, const Value& b) {
    const bool a_nan = is_real(a) && std::isnan(a.real), b_nan = is_real(b) && std::isnan(b.real);
    if (a_nan || b_nan) return sign(a_nan, b_nan);
    if (is_real(a)) return is_real(b) ? sign(a.real, b.real) : -compare(b.decimal(), a.real);
    return is_real(b) ? compare(a.decimal(), b.real) : compare(a.decimal(), b.decimal());
}

/// Local times are ordered as UTC; of two at the same instant, the one without timezone is first.
int moment_order(const Value& a, const Value& b) {
    const int order = sign(a.moment().utc(), b.moment().utc());
    return order != 0 ? order : sign(a.moment().has_timezone(), b.moment().has_timezone());
}

/// A month counts as a twelfth of 365.2425 days.
int duration_order(const Value& a, const Value& b) {
    constexpr Int128 kMonth = 2'629'746 * kSecond;
    return sign(a.months * kMonth + a.number, b.months * kMonth + b.number);
}

int text_order(const Value& a, const Value& b) {
    const int order = sign(a.text, b.text);
    return order != 0 ? order : sign(a.tag, b.tag);
}

bool is_number_or_time(Tag tag) { return tag >= Tag::Integer && tag <= Tag::Date; }

/// Blank nodes by number; those of this evaluation are last.
int blank_order(const Value& a, const Value& b) { return sign(a.id, b.id); }

}  // namespace

int value_order(const Value& a, const Value& b) {
    const int class_order = sign(rank(a.type), rank(b.type));
    if (class_order != 0) return class_order;
    switch (rank(a.type)) {
        case 0:
            return 0;
        case 1:
            return blank_order(a, b);
        case 2:
            return a.text.compare(b.text);
        case 3:
            return number_order(a, b);
        case 4:
            return text_order(a, b);
        case 5:
            return sign(a.number, b.number);
        case 6:
        case 7:
        case 8:
            return moment_order(a, b);
        case 9:
            return duration_order(a, b);
        default: {
            const int datatype_order = sign(a.tag, b.tag);
            return datatype_order != 0 ? datatype_order : sign(a.text, b.text);
        }
    }
}

int spelling_order(const TermView& a, const TermView& b) {
    const int datatype_order = sign(a.datatype, b.datatype);
    return datatype_order != 0 ? datatype_order : sign(a.lexical, b.lexical);
}

int term_order(const Value& a, const Value& b, const LocalTerms& terms) {
    if (a.id == b.id && a.id != kUnbound) return 0;
    const int order = value_order(a, b);
    if (order != 0 || a.id == kUnbound || b.id == kUnbound) return order;
    std::string a_scratch, b_scratch;
    const TermView x = terms.view(a.id, a_scratch), y = terms.view(b.id, b_scratch);
    return spelling_order(x, y);
}

Value value_of(TermId id, const TermView& term) {
    Value out;
    if (id == kUnbound) return out;
    const Tag tag = tag_of(id);
    if (is_number_or_time(tag))
        inline_value(id, out);
    else
        out = tag == Tag::Blank ? Value::of_text(ValueType::Blank, {}, {}) : parse_value(term);
    out.id = id;
    return out;
}

Value value_of(TermId id, const LocalTerms& terms, std::string& scratch) {
    const bool has_text = id != kUnbound && !is_number_or_time(tag_of(id)) && tag_of(id) != Tag::Blank;
    return value_of(id, has_text ? terms.view(id, scratch) : TermView{});
}

}  // namespace expr

int value_compare(TermId a, TermId b, const LocalTerms& terms) {
    if (a == b) return 0;
    if (tag_of(a) == Tag::Integer && tag_of(b) == Tag::Integer)
        return (integer_value(a) > integer_value(b)) - (integer_value(a) < integer_value(b));
    if (tag_of(a) == Tag::String && tag_of(b) == Tag::String) return a < b ? -1 : 1;  // ids sort by code points
    std::string a_scratch, b_scratch;
    return expr::value_order(expr::value_of(a, terms, a_scratch), expr::value_of(b, terms, b_scratch));
}

int order_compare(TermId a, TermId b, const LocalTerms& terms) {
    if (const int order = value_compare(a, b, terms); order != 0 || a == b) return order;
    std::string a_scratch, b_scratch;
    return expr::term_order(expr::value_of(a, terms, a_scratch), expr::value_of(b, terms, b_scratch), terms);
}

}  // namespace penstock
