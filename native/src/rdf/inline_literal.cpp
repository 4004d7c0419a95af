#include "rdf/inline_literal.hpp"

#include <array>
#include <charconv>
#include <limits>

#include "rdf/inline_spelling.hpp"
#include "rdf/inline_time.hpp"

namespace penstock {

using namespace inline_detail;

namespace {

constexpr std::uint64_t low_bits(int n) { return (std::uint64_t{1} << n) - 1; }

// ---------------------------------------------------------------- integers
constexpr std::int64_t kMin64 = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax64 = std::numeric_limits<std::int64_t>::max();

struct IntegerTypeInfo {
    std::string_view iri;
    std::int64_t min;
    std::int64_t max;
};
constexpr std::array<IntegerTypeInfo, kIntegerTypes> kIntegerTypeInfo = {{
    {"http://www.w3.org/2001/XMLSchema#integer", kMin64, kMax64},
    {"http://www.w3.org/2001/XMLSchema#long", kMin64, kMax64},
    {"http://www.w3.org/2001/XMLSchema#int", -2147483648LL, 2147483647LL},
    {"http://www.w3.org/2001/XMLSchema#short", -32768, 32767},
    {"http://www.w3.org/2001/XMLSchema#byte", -128, 127},
    {"http://www.w3.org/2001/XMLSchema#nonNegativeInteger", 0, kMax64},
    {"http://www.w3.org/2001/XMLSchema#positiveInteger", 1, kMax64},
    {"http://www.w3.org/2001/XMLSchema#nonPositiveInteger", kMin64, 0},
    {"http://www.w3.org/2001/XMLSchema#negativeInteger", kMin64, -1},
    {"http://www.w3.org/2001/XMLSchema#unsignedLong", 0, kMax64},
    {"http://www.w3.org/2001/XMLSchema#unsignedInt", 0, 4294967295LL},
    {"http://www.w3.org/2001/XMLSchema#unsignedShort", 0, 65535},
    {"http://www.w3.org/2001/XMLSchema#unsignedByte", 0, 255},
}};
constexpr std::uint64_t kPlusBit = std::uint64_t{1} << 55;

TermId encode_integer(std::string_view lexical, IntegerType type) {
    Cursor cursor(lexical);
    const bool minus = cursor.take('-');
    const bool plus = !minus && cursor.take('+');
    const char* first = cursor.at;
    std::uint64_t magnitude = 0;
    const int digits = cursor.digits(magnitude);
    if (digits <= 0 || !cursor.done()) return kUnbound;
    // Leading zeros; "-0" has no integer value of its own.
    if (*first == '0' && (digits > 1 || minus)) return kUnbound;
    const auto value = minus ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
    const IntegerTypeInfo& info = kIntegerTypeInfo[static_cast<std::size_t>(type)];
    if (!fits_inline_integer(value) || value < info.min || value > info.max) return kUnbound;
    return make_integer(value, type) | (plus ? kPlusBit : 0);
}

void append_number(std::string& out, std::int64_t value) {
    std::array<char, 24> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
    out.append(buffer.data(), result.ptr);
}

/// Appends `digits` with a point before the last `fraction` of them; without a point if `fraction` is 0.
void append_fixed(std::string& out, std::uint64_t digits, int fraction) {
    append_padded(out, digits, fraction + 1);
    if (fraction > 0) out.insert(out.size() - static_cast<std::size_t>(fraction), 1, '.');
}

// ---------------------------------------------------------------- decimals, doubles, floats
/// [-] digits [. digits], if (mantissa, fraction) determine the spelling.
struct Fixed {
    bool minus = false;
    std::uint64_t mantissa = 0;
    int fraction = 0;
};

bool read_fixed(Cursor& cursor, Fixed& out) {
    out.minus = cursor.take('-');
    const char* first = cursor.at;
    const int whole = cursor.digits(out.mantissa);
    if (whole <= 0 || (*first == '0' && whole > 1)) return false;
    if (!cursor.take('.')) return true;
    const int room = 18 - whole;
    out.fraction = cursor.digits(out.mantissa);
    return out.fraction > 0 && out.fraction <= room;  // more than 18 digits never fit
}

TermId encode_decimal(std::string_view lexical) {
    Cursor cursor(lexical);
    Fixed fixed;
    if (!read_fixed(cursor, fixed) || !cursor.done() || (fixed.minus && fixed.mantissa == 0)) return kUnbound;
    const auto magnitude = static_cast<std::int64_t>(fixed.mantissa);
    return make_decimal({fixed.minus ? -magnitude : magnitude, fixed.fraction});
}

constexpr std::array<std::string_view, 4> kSpecials = {"NaN", "INF", "-INF", "+INF"};

constexpr std::uint64_t kExponentForm = std::uint64_t{1} << 59;
constexpr std::uint64_t kMinusBit = std::uint64_t{1} << 58;

/// Spelling of an exponent. The C styles are printf's and Python's: always a sign, at least two digits.
enum ExponentStyle : std::uint64_t { kUpper = 0, kLower = 1, kUpperC = 2, kLowerC = 3 };

bool read_exponent(Cursor& cursor, int& exponent, std::uint64_t& style) {
    const bool lower = cursor.take('e');
    if (!lower && !cursor.take('E')) return false;
    const bool minus = cursor.take('-');
    const bool plus = !minus && cursor.take('+');
    const char* first = cursor.at;
    std::uint64_t magnitude = 0;
    const int digits = cursor.digits(magnitude);
    if (digits < 1 || digits > 2 || !cursor.done() || magnitude > 31) return false;
    const bool padded = digits == 2 && *first == '0';
    // Two-digit exponents with a minus have the same spelling in both styles; they use the plain one.
    const bool c_style = plus || padded;
    if (c_style && (digits != 2 || !(plus || minus))) return false;
    if (magnitude == 0 && minus) return false;
    exponent = minus ? -static_cast<int>(magnitude) : static_cast<int>(magnitude);
    style = (lower ? 1 : 0) + (c_style ? 2 : 0);
    return true;
}

TermId encode_floating(std::string_view lexical, Tag tag) {
    for (std::size_t i = 0; i < kSpecials.size(); ++i)
        if (lexical == kSpecials[i]) return make_id(tag, (inline_detail::kFirstSpecial + i) << 53);
    Cursor cursor(lexical);
    Fixed fixed;
    if (!read_fixed(cursor, fixed)) return kUnbound;
    const auto fraction = static_cast<std::uint64_t>(fixed.fraction);
    const std::uint64_t minus = fixed.minus ? kMinusBit : 0;
    if (cursor.done()) {  // fraction <= 17 < kFirstSpecial
        if (fixed.mantissa > low_bits(53)) return kUnbound;
        return make_id(tag, minus | (fraction << 53) | fixed.mantissa);
    }
    int exponent = 0;
    std::uint64_t style = 0;
    if (!read_exponent(cursor, exponent, style)) return kUnbound;
    const int scale = exponent - fixed.fraction;
    if (fixed.mantissa > low_bits(46) || fraction > 15 || scale < -22 || scale > 22) return kUnbound;
    return make_id(tag, kExponentForm | minus | (style << 56) | (fraction << 52) |
                            ((static_cast<std::uint64_t>(exponent) & 63) << 46) | fixed.mantissa);
}

/// Conversion through double rounds twice. A spelling for which that misses the nearest float is not inlined.
TermId encode_float(std::string_view lexical) {
    const TermId id = encode_floating(lexical, Tag::Float);
    if (id == kUnbound || ((payload_of(id) >> 59) == 0 && ((id >> 53) & 31) >= inline_detail::kFirstSpecial)) return id;
    float nearest = 0;
    const auto result = std::from_chars(lexical.data(), lexical.data() + lexical.size(), nearest);
    return result.ec == std::errc{} && nearest == float_value(id) ? id : kUnbound;
}

void append_floating(std::string& out, TermId id) {
    const std::uint64_t payload = payload_of(id);
    const bool exponent_form = (payload & kExponentForm) != 0;
    const std::uint64_t plain_fraction = (payload >> 53) & 31;
    if (!exponent_form && plain_fraction >= inline_detail::kFirstSpecial) {
        out += kSpecials[plain_fraction - inline_detail::kFirstSpecial];
        return;
    }
    if ((payload & kMinusBit) != 0) out += '-';
    if (!exponent_form) return append_fixed(out, payload & low_bits(53), static_cast<int>(plain_fraction));
    append_fixed(out, payload & low_bits(46), static_cast<int>((payload >> 52) & 15));
    const std::uint64_t style = (payload >> 56) & 3;
    const int exponent = static_cast<int>(static_cast<std::int64_t>(payload << 12) >> 58);
    out += (style & kLower) != 0 ? 'e' : 'E';
    const bool c_style = (style & kUpperC) != 0;
    if (exponent < 0) out += '-';
    if (exponent >= 0 && c_style) out += '+';
    append_padded(out, static_cast<std::uint64_t>(exponent < 0 ? -exponent : exponent), c_style ? 2 : 1);
}

// ---------------------------------------------------------------- booleans
constexpr std::array<std::string_view, 4> kBooleans = {"false", "true", "0", "1"};

TermId encode_boolean(std::string_view lexical) {
    for (std::size_t i = 0; i < kBooleans.size(); ++i)
        if (lexical == kBooleans[i]) return make_id(Tag::Boolean, i);
    return kUnbound;
}

// ---------------------------------------------------------------- dispatch on the datatype
constexpr std::string_view kDecimalIri = "http://www.w3.org/2001/XMLSchema#decimal";
constexpr std::string_view kDoubleIri = "http://www.w3.org/2001/XMLSchema#double";
constexpr std::string_view kFloatIri = "http://www.w3.org/2001/XMLSchema#float";
constexpr std::string_view kBooleanIri = "http://www.w3.org/2001/XMLSchema#boolean";
constexpr std::string_view kDateTimeIri = "http://www.w3.org/2001/XMLSchema#dateTime";
constexpr std::string_view kDateIri = "http://www.w3.org/2001/XMLSchema#date";

TermId encode_derived_integer(std::string_view lexical, std::string_view datatype) {
    for (std::size_t i = 0; i < kIntegerTypeInfo.size(); ++i)
        if (datatype == kIntegerTypeInfo[i].iri) return encode_integer(lexical, static_cast<IntegerType>(i));
    return kUnbound;
}

/// The longest spelling of any layout except Integer and String: a dateTime with milliseconds and an offset.
constexpr std::size_t kLongestSpelling = 29;

}  // namespace

double inline_detail::special_double(std::uint64_t which) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    switch (which - kFirstSpecial) {
        case 0:
            return std::numeric_limits<double>::quiet_NaN();
        case 2:
            return -kInfinity;
        default:
            return kInfinity;
    }
}

std::string_view integer_type_iri(IntegerType type) {
    const auto index = static_cast<std::size_t>(type);
    return index < kIntegerTypeInfo.size() ? kIntegerTypeInfo[index].iri : std::string_view{};
}

bool is_valid_inline(TermId id) {
    if (tag_of(id) == Tag::Blank) return true;
    if (!is_inline_literal(id)) return false;
    std::string scratch;
    const TermView view = decode_inline(id, scratch);
    return encode_inline(view.lexical, view.datatype, {}) == id;
}

TermId encode_inline(std::string_view lexical, std::string_view datatype, std::string_view lang) {
    if (!lang.empty() || lexical.size() > kLongestSpelling || !datatype.starts_with(kXsd)) return kUnbound;
    const std::string_view name = datatype.substr(kXsd.size());
    switch (name.empty() ? '\0' : name[0]) {
        case 's':
            if (name == "string") return lexical.size() <= kInlineStringBytes ? make_short_string(lexical) : kUnbound;
            break;
        case 'd':
            if (name == "double") return encode_floating(lexical, Tag::Double);
            if (name == "decimal") return encode_decimal(lexical);
            if (name == "dateTime") return encode_datetime(lexical);
            if (name == "date") return encode_date(lexical);
            return kUnbound;
        case 'i':
            if (name == "integer") return encode_integer(lexical, IntegerType::Integer);
            break;
        case 'f':
            return name == "float" ? encode_float(lexical) : kUnbound;
        case 'b':
            if (name == "boolean") return encode_boolean(lexical);
            break;
        default:
            break;
    }
    return encode_derived_integer(lexical, datatype);
}

std::string_view inline_datatype(TermId id) {
    switch (tag_of(id)) {
        case Tag::Integer:
            return integer_type_iri(integer_type(id));
        case Tag::Decimal:
            return kDecimalIri;
        case Tag::Double:
            return kDoubleIri;
        case Tag::Float:
            return kFloatIri;
        case Tag::Boolean:
            return kBooleanIri;
        case Tag::DateTime:
            return kDateTimeIri;
        case Tag::Date:
            return kDateIri;
        case Tag::String:
            return kXsdString;
        default:
            return {};
    }
}

TermView decode_inline(TermId id, std::string& scratch) {
    scratch.clear();
    switch (tag_of(id)) {
        case Tag::Blank:
            scratch += 'b';
            append_padded(scratch, payload_of(id), 1);
            return {Kind::Blank, scratch, {}, {}};
        case Tag::Integer:
            if ((payload_of(id) & kPlusBit) != 0) scratch += '+';
            append_number(scratch, integer_value(id));
            break;
        case Tag::Decimal: {
            const DecimalParts value = decimal_value(id);
            if (value.mantissa < 0) scratch += '-';
            append_fixed(scratch, static_cast<std::uint64_t>(value.mantissa < 0 ? -value.mantissa : value.mantissa),
                         value.scale);
            break;
        }
        case Tag::Double:
        case Tag::Float:
            append_floating(scratch, id);
            break;
        case Tag::Boolean:
            scratch += kBooleans[payload_of(id) & 3];
            break;
        case Tag::DateTime:
            append_datetime(scratch, id);
            break;
        case Tag::Date:
            append_date(scratch, id);
            break;
        case Tag::String: {
            char buffer[8];
            scratch += short_string(id, buffer);
            break;
        }
        default:
            return {};
    }
    return {Kind::Literal, scratch, inline_datatype(id), {}};
}

}  // namespace penstock
