#include "expr/value.hpp"

#include <cmath>

#include "expr/datatypes.hpp"
#include "expr/real_text.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock::expr {
namespace {

constexpr std::string_view kXsdNames[] = {
    "http://www.w3.org/2001/XMLSchema#boolean",
    "http://www.w3.org/2001/XMLSchema#integer",
    "http://www.w3.org/2001/XMLSchema#decimal",
    "http://www.w3.org/2001/XMLSchema#float",
    "http://www.w3.org/2001/XMLSchema#double",
    "http://www.w3.org/2001/XMLSchema#dateTime",
    "http://www.w3.org/2001/XMLSchema#date",
    "http://www.w3.org/2001/XMLSchema#time",
    "http://www.w3.org/2001/XMLSchema#yearMonthDuration",
    "http://www.w3.org/2001/XMLSchema#dayTimeDuration",
    "http://www.w3.org/2001/XMLSchema#duration",
};

Value parse_literal(const TermView& term) {
    if (!term.lang.empty()) return Value::of_text(ValueType::LangString, term.lexical, term.lang);
    if (term.datatype.empty() || term.datatype == kXsdString) return Value::string(term.lexical);
    const Datatype datatype = find_datatype(term.datatype);
    Value out = parse_lexical(term.lexical, datatype);
    if (out.type >= ValueType::Malformed) out.text = term.lexical;
    if (out.type >= ValueType::Malformed || datatype.integer != IntegerType::Integer || datatype.timezone_required)
        out.tag = term.datatype;
    return out;
}

}  // namespace

Value parse_value(const TermView& term) {
    switch (term.kind) {
        case Kind::Unbound:
            return {};
        case Kind::Iri:
            return Value::iri(term.lexical);
        case Kind::Blank:
            return Value::of_text(ValueType::Blank, term.lexical, {});
        case Kind::Literal:
            return parse_literal(term);
    }
    return {};
}

void inline_value(TermId id, Value& out) {
    out = {};
    out.id = id;
    switch (tag_of(id)) {
        case Tag::Integer:
            out.type = ValueType::Integer;
            out.number = integer_value(id);
            if (integer_type(id) != IntegerType::Integer) out.tag = integer_type_iri(integer_type(id));
            return;
        case Tag::Decimal:
            out.type = ValueType::Decimal;
            out.number = decimal_value(id).mantissa;
            out.scale = static_cast<std::uint8_t>(decimal_value(id).scale);
            return;
        case Tag::Double:
            out.type = ValueType::Double;
            out.real = double_value(id);
            return;
        case Tag::Float:
            out.type = ValueType::Float;
            out.real = float_value(id);
            return;
        case Tag::Boolean:
            out.type = ValueType::Boolean;
            out.number = boolean_value(id) ? 1 : 0;
            return;
        case Tag::DateTime: {
            const DateTimeParts parts = datetime_value(id);
            out.type = ValueType::DateTime;
            out.number = parts.local_millis() * kMillisecond;
            if (parts.has_timezone) out.timezone = static_cast<std::int16_t>(parts.offset_minutes);
            return;
        }
        case Tag::Date: {
            const DateParts parts = date_value(id);
            out.type = ValueType::Date;
            out.number = parts.days * kDay;
            if (parts.has_timezone) out.timezone = static_cast<std::int16_t>(parts.offset_minutes);
            return;
        }
        default:
            out.id = kUnbound;
    }
}

std::string_view datatype_iri(const Value& value) {
    switch (value.type) {
        case ValueType::Error:
        case ValueType::Iri:
        case ValueType::Blank:
            return {};
        case ValueType::String:
            return kXsdString;
        case ValueType::LangString:
            return kRdfLangString;
        default:
            break;
    }
    if (!value.tag.empty()) return value.tag;
    return kXsdNames[static_cast<int>(value.type) - static_cast<int>(ValueType::Boolean)];
}

std::string_view canonical_text(const Value& value, std::string& scratch) {
    switch (value.type) {
        case ValueType::Error:
            return {};
        case ValueType::Boolean:
            return value.truth() ? "true" : "false";
        case ValueType::Integer:
            return scratch = integer_text(value.number);
        case ValueType::Decimal:
            return scratch = decimal_text(value.decimal());
        case ValueType::Float:
            return scratch = real_text(static_cast<float>(value.real));
        case ValueType::Double:
            return scratch = real_text(value.real);
        case ValueType::DateTime:
            return scratch = date_time_text(value.moment());
        case ValueType::Date:
            return scratch = date_text(value.moment());
        case ValueType::Time:
            return scratch = time_text(value.moment());
        case ValueType::YearMonthDuration:
            return scratch = duration_text(value.duration(), DurationKind::YearMonth);
        case ValueType::DayTimeDuration:
            return scratch = duration_text(value.duration(), DurationKind::DayTime);
        case ValueType::Duration:
            return scratch = duration_text(value.duration(), DurationKind::Any);
        default:
            return value.text;
    }
}

Truth effective_boolean(const Value& value) {
    switch (value.type) {
        case ValueType::Boolean:
        case ValueType::Integer:
        case ValueType::Decimal:
            return truth(value.number != 0);
        case ValueType::Float:
        case ValueType::Double:
            return truth(!std::isnan(value.real) && value.real != 0);
        case ValueType::String:
        case ValueType::LangString:
            return truth(!value.text.empty());
        case ValueType::Malformed:
            return Truth::False;
        case ValueType::Huge:
            return Truth::True;
        default:
            return Truth::Error;
    }
}

}  // namespace penstock::expr
