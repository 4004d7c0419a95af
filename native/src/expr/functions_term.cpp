// Functions on RDF terms (SPARQL 1.1 §17.4.2).
#include <algorithm>

#include "expr/compare.hpp"
#include "expr/datatypes.hpp"
#include "expr/functions.hpp"
#include "expr/iri_reference.hpp"
#include "expr/utf8.hpp"
#include "rdf/language_tag.hpp"

namespace penstock::expr {
namespace {

Value is_numeric(Call&, std::span<const Value> args) {
    return Value::boolean(args[0].numeric() || args[0].type == ValueType::Huge);
}

Value str(Call& call, std::span<const Value> args) {
    if (args[0].type == ValueType::Blank) return {};
    return Value::string(call.frame.text(args[0]));
}

Value lang(Call&, std::span<const Value> args) {
    if (!args[0].literal()) return {};
    return Value::string(args[0].type == ValueType::LangString ? args[0].tag : std::string_view{});
}

Value datatype(Call&, std::span<const Value> args) {
    return args[0].literal() ? Value::iri(datatype_iri(args[0])) : Value{};
}

/// Basic filtering of RFC 4647 §3.3.1.
Value lang_matches(Call&, std::span<const Value> args) {
    if (args[0].type != ValueType::String || args[1].type != ValueType::String) return {};
    const std::string_view tag = args[0].text, range = args[1].text;
    if (range == "*") return Value::boolean(!tag.empty());
    if (range.size() > tag.size() || range.empty()) return Value::boolean(range.empty() && tag.empty());
    const bool whole = tag.size() == range.size() || tag[range.size()] == '-';
    return Value::boolean(whole && equal_tags(tag.substr(0, range.size()), range));
}

Value iri(Call& call, std::span<const Value> args) {
    if (args[0].type != ValueType::Iri && args[0].type != ValueType::String) return {};
    const std::string_view text = args[0].text;
    if (!iri_characters(text)) return {};
    if (is_absolute(text)) return args[0].type == ValueType::Iri ? args[0] : Value::iri(text);
    if (!is_absolute(call.options.base)) return {};
    return Value::iri(call.frame.keep(resolve(call.options.base, text)));
}

Value bnode(Call& call, std::span<const Value> args) {
    if (!args.empty() && args[0].type != ValueType::String) return {};
    Value out = Value::of_text(ValueType::Blank, {}, {});
    out.id = args.empty() ? call.frame.context.terms.fresh_blank() : call.frame.blank_of(call.row, args[0].text);
    return out;
}

Value strdt(Call& call, std::span<const Value> args) {
    if (args[0].type != ValueType::String || args[1].type != ValueType::Iri || args[1].text == kRdfLangString)
        return {};
    Value out = parse_value({Kind::Literal, args[0].text, args[1].text, {}});
    out.id = call.frame.context.terms.intern({Kind::Literal, args[0].text, args[1].text, {}});
    return out;
}

/// Whether the tag is well-formed by the grammar of Turtle and SPARQL: letters, then groups of letters and digits.
bool language_tag(std::string_view tag) {
    const auto alpha = [](char c) { return ascii_lower(c) >= 'a' && ascii_lower(c) <= 'z'; };
    std::size_t group = 0;
    bool first = true;
    for (const char c : tag) {
        if (c == '-') {
            if (group == 0) return false;
            group = 0;
            first = false;
        } else if (alpha(c) || (!first && c >= '0' && c <= '9')) {
            ++group;
        } else {
            return false;
        }
    }
    return group > 0;
}

Value strlang(Call& call, std::span<const Value> args) {
    if (args[0].type != ValueType::String || args[1].type != ValueType::String || !language_tag(args[1].text))
        return {};
    const std::string_view tag = args[1].text;
    return Value::of_text(ValueType::LangString, args[0].text,
                          has_upper_case(tag) ? call.frame.keep(lower_case(tag)) : tag);
}

constexpr std::string_view kUuidPrefix = "urn:uuid:";

/// A version 4 UUID (RFC 4122 §4.4), with a prefix.
std::string_view uuid_text(Call& call) {
    constexpr std::size_t kDigits = 36;
    Random& random = call.frame.memory.random;
    const std::uint64_t high = (random.next() & ~std::uint64_t{0xF000}) | 0x4000;
    const std::uint64_t low = (random.next() & ~(std::uint64_t{3} << 62)) | (std::uint64_t{2} << 62);
    char* out = call.frame.allocate(kUuidPrefix.size() + kDigits);
    std::copy(kUuidPrefix.begin(), kUuidPrefix.end(), out);
    char* at = out + kUuidPrefix.size();
    for (int digit = 0; digit < 32; ++digit) {
        if (digit == 8 || digit == 12 || digit == 16 || digit == 20) *at++ = '-';
        const std::uint64_t word = digit < 16 ? high : low;
        *at++ = "0123456789abcdef"[(word >> (60 - 4 * (digit % 16))) & 15];
    }
    return {out, kUuidPrefix.size() + kDigits};
}

Value uuid(Call& call, std::span<const Value>) { return Value::iri(uuid_text(call)); }
Value struuid(Call& call, std::span<const Value>) { return Value::string(uuid_text(call).substr(kUuidPrefix.size())); }

}  // namespace

std::span<const FunctionEntry> term_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"isnumeric", 1, 1, is_numeric},
        {"str", 1, 1, str},
        {"lang", 1, 1, lang},
        {"datatype", 1, 1, datatype},
        {"langmatches", 2, 2, lang_matches},
        {"iri", 1, 1, iri},
        {"bnode", 0, 1, bnode},
        {"strdt", 2, 2, strdt},
        {"strlang", 2, 2, strlang},
        {"uuid", 0, 0, uuid},
        {"struuid", 0, 0, struuid},
    };
    return kEntries;
}

}  // namespace penstock::expr
