#include "expr/compare.hpp"

#include <algorithm>
#include <cmath>

#include "expr/arithmetic.hpp"

namespace penstock::expr {
namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

Truth decide(Comparison operation, std::partial_ordering order) {
    switch (operation) {
        case Comparison::Equal:
            return truth(order == 0);
        case Comparison::NotEqual:
            return truth(order != 0);
        case Comparison::Less:
            return truth(order < 0);
        case Comparison::Greater:
            return truth(order > 0);
        case Comparison::LessEqual:
            return truth(order <= 0);
        case Comparison::GreaterEqual:
            return truth(order >= 0);
    }
    return Truth::Error;
}

bool is_moment(ValueType type) {
    return type == ValueType::DateTime || type == ValueType::Date || type == ValueType::Time;
}
bool is_duration(ValueType type) { return type >= ValueType::YearMonthDuration && type <= ValueType::Duration; }
bool is_unknown(ValueType type) { return type >= ValueType::Malformed; }

/// The order of two literals with a common ordered type; false if they have none.
bool ordered(const Value& a, const Value& b, std::partial_ordering& order) {
    if (is_duration(a.type) && is_duration(b.type)) {
        order = compare(a.duration(), b.duration());
        return true;
    }
    if (a.type != b.type) return false;
    if (a.type == ValueType::String)
        order = a.text <=> b.text;
    else if (a.type == ValueType::Boolean)
        order = a.number <=> b.number;
    else if (is_moment(a.type))
        order = compare(a.moment(), b.moment());
    else
        return false;
    return true;
}

/// Equality of values without an order: terms that are not literals, and literals of different types.
Truth equal_unordered(const Value& a, const Value& b) {
    if (!a.literal() || !b.literal()) return truth(a.type == b.type && same_text(a, b));
    if (a.type == ValueType::LangString || b.type == ValueType::LangString)
        return truth(a.type == b.type && a.text == b.text && equal_tags(a.tag, b.tag));
    if (!is_unknown(a.type) && !is_unknown(b.type)) return Truth::False;
    return a.type == b.type && same_text(a, b) ? Truth::True : Truth::Error;
}

}  // namespace

bool equal_tags(std::string_view a, std::string_view b) {
    return a.size() == b.size() &&
           std::equal(a.begin(), a.end(), b.begin(), [](char x, char y) { return lower(x) == lower(y); });
}

bool same_text(const Value& a, const Value& b) {
    if (a.type == ValueType::Blank || (a.id != kUnbound && a.id == b.id)) return a.id == b.id;
    return a.text == b.text && a.tag == b.tag;
}

Truth compare(Comparison operation, const Value& a, const Value& b) {
    if (a.error() || b.error()) return Truth::Error;
    if (a.numeric() && b.numeric()) return decide(operation, compare_numbers(a, b));
    std::partial_ordering order = std::partial_ordering::unordered;
    if (ordered(a, b, order)) {
        if (order != std::partial_ordering::unordered) return decide(operation, order);
        // Durations in undecided order are unequal. For a moment with and one without timezone, equality is an error.
        const bool differ = is_duration(a.type) && operation <= Comparison::NotEqual;
        return differ ? truth(operation == Comparison::NotEqual) : Truth::Error;
    }
    if (operation > Comparison::NotEqual) return Truth::Error;
    const Truth equal = equal_unordered(a, b);
    if (equal == Truth::Error || operation == Comparison::Equal) return equal;
    return truth(equal == Truth::False);
}

}  // namespace penstock::expr
