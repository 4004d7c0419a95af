// Functions on strings (SPARQL 1.1 §17.4.3). Positions count code points; results have the operand's language tag.
#include <cmath>
#include <cstring>

#include "expr/arithmetic.hpp"
#include "expr/compare.hpp"
#include "expr/functions.hpp"
#include "expr/utf8.hpp"

namespace penstock::expr {
namespace {

/// Argument compatibility (§17.4.3.1.2): the second has no tag, or the tag of the first.
bool compatible(const Value& a, const Value& b) {
    if (!a.textual() || !b.textual()) return false;
    return b.type == ValueType::String || (a.type == ValueType::LangString && equal_tags(a.tag, b.tag));
}

Value strlen(Call&, std::span<const Value> args) {
    return args[0].textual() ? Value::integer(static_cast<Int128>(code_points(args[0].text))) : Value{};
}

double rounded(const Value& number) { return std::floor(as_double(number) + 0.5); }

/// fn:substring: the characters at positions p (from 1) with round(start) <= p < round(start) + round(length).
Value substr(Call&, std::span<const Value> args) {
    if (!args[0].textual() || !args[1].numeric() || (args.size() > 2 && !args[2].numeric())) return {};
    const std::string_view text = args[0].text;
    const double first = rounded(args[1]);
    const double end = args.size() > 2 ? first + rounded(args[2]) : HUGE_VAL;
    if (!(end > 1) || !(first < end)) return Value::string_like(args[0], {});  // also true for NaN
    const double limit = static_cast<double>(text.size()) + 1;  // the size in bytes bounds the number of code points
    const auto from = static_cast<std::size_t>(std::fmin(std::fmax(first, 1), limit)) - 1;
    const auto to = static_cast<std::size_t>(std::fmin(end, limit)) - 1;
    const std::size_t begin = code_point_offset(text, from);
    const std::size_t size = code_point_offset(text.substr(begin), to - from);
    return Value::string_like(args[0], text.substr(begin, size));
}

/// Converts ASCII text here; other text in Python.
template <char (*convert)(char)>
Value change_case(Call& call, std::span<const Value> args, std::string_view name) {
    if (!args[0].textual()) return {};
    const std::string_view text = args[0].text;
    if (!is_ascii(text)) return call.frame.foreign(name, args);
    char* out = call.frame.allocate(text.size());
    std::transform(text.begin(), text.end(), out, convert);
    return Value::string_like(args[0], {out, text.size()});
}
Value ucase(Call& call, std::span<const Value> args) { return change_case<ascii_upper>(call, args, "ucase"); }
Value lcase(Call& call, std::span<const Value> args) { return change_case<ascii_lower>(call, args, "lcase"); }

Value strstarts(Call&, std::span<const Value> args) {
    return compatible(args[0], args[1]) ? Value::boolean(args[0].text.starts_with(args[1].text)) : Value{};
}
Value strends(Call&, std::span<const Value> args) {
    return compatible(args[0], args[1]) ? Value::boolean(args[0].text.ends_with(args[1].text)) : Value{};
}
Value contains(Call&, std::span<const Value> args) {
    if (!compatible(args[0], args[1])) return {};
    return Value::boolean(args[0].text.find(args[1].text) != std::string_view::npos);
}

/// Without a match the result is the empty string without a tag (§17.4.3.9).
Value strbefore(Call&, std::span<const Value> args) {
    if (!compatible(args[0], args[1])) return {};
    const std::size_t at = args[0].text.find(args[1].text);
    if (at == std::string_view::npos) return Value::string({});
    return Value::string_like(args[0], args[0].text.substr(0, at));
}
Value strafter(Call&, std::span<const Value> args) {
    if (!compatible(args[0], args[1])) return {};
    const std::size_t at = args[0].text.find(args[1].text);
    if (at == std::string_view::npos) return Value::string({});
    return Value::string_like(args[0], args[0].text.substr(at + args[1].text.size()));
}

Value encode_for_uri(Call& call, std::span<const Value> args) {
    if (!args[0].textual()) return {};
    const auto unreserved = [](char c) {
        const char lower = ascii_lower(c);
        return (lower >= 'a' && lower <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.' || c == '~';
    };
    const std::string_view text = args[0].text;
    const auto plain = static_cast<std::size_t>(std::count_if(text.begin(), text.end(), unreserved));
    const std::size_t size = plain + 3 * (text.size() - plain);
    char* out = call.frame.allocate(size);
    char* at = out;
    for (const char c : text) {
        if (unreserved(c)) {
            *at++ = c;
            continue;
        }
        *at++ = '%';
        *at++ = "0123456789ABCDEF"[static_cast<unsigned char>(c) >> 4];
        *at++ = "0123456789ABCDEF"[static_cast<unsigned char>(c) & 15];
    }
    return Value::string({out, size});
}

Value concat(Call& call, std::span<const Value> args) {
    std::size_t size = 0;
    bool same_tag = !args.empty();
    for (const Value& part : args) {
        if (!part.textual()) return {};
        check_text(size += part.text.size());
        same_tag = same_tag && part.type == ValueType::LangString && equal_tags(part.tag, args[0].tag);
    }
    char* out = call.frame.allocate(size);
    char* at = out;
    for (const Value& part : args) at = std::copy(part.text.begin(), part.text.end(), at);
    return same_tag ? Value::string_like(args[0], {out, size}) : Value::string({out, size});
}

}  // namespace

std::span<const FunctionEntry> string_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"strlen", 1, 1, strlen},        {"substr", 2, 3, substr},
        {"ucase", 1, 1, ucase},          {"lcase", 1, 1, lcase},
        {"strstarts", 2, 2, strstarts},  {"strends", 2, 2, strends},
        {"contains", 2, 2, contains},    {"strbefore", 2, 2, strbefore},
        {"strafter", 2, 2, strafter},    {"encode_for_uri", 1, 1, encode_for_uri},
        {"concat", 0, SIZE_MAX, concat},
    };
    return kEntries;
}

}  // namespace penstock::expr
