// A term as a value: the operands and results of operators and functions.
#pragma once

#include <cstdint>
#include <string_view>

#include "expr/decimal.hpp"
#include "expr/xsd_time.hpp"
#include "rdf/term.hpp"

namespace penstock::expr {

enum class ValueType : std::uint8_t {
    Error,  // an error of the expression, or an unbound variable
    Iri,
    Blank,
    String,      // xsd:string
    LangString,  // text and tag
    Boolean,
    Integer,  // xsd:integer; `tag` is the datatype IRI of a derived type, where it is known to matter
    Decimal,
    Float,
    Double,
    DateTime,
    Date,
    Time,
    YearMonthDuration,
    DayTimeDuration,
    Duration,
    Malformed,  // a numeric or boolean datatype with an invalid lexical form; its effective boolean value is false
    Huge,       // a valid number outside ±(2^127 - 1): known to be numeric, but no operation accepts it
    Opaque,     // any other literal: unknown datatypes, ill-typed or unrepresentable dates
};

/// Trivially copyable; texts point into the dictionary, the local terms, or the arena of the running evaluation.
/// Numbers of type Integer and Decimal have at most 127 bits (decimal.hpp). An operation with a larger result is an
/// error.
struct Value {
    ValueType type = ValueType::Error;
    std::uint8_t scale = 0;               // Decimal
    std::int16_t timezone = kNoTimezone;  // DateTime, Date, Time: minutes
    std::int32_t months = 0;              // durations
    TermId id = kUnbound;                 // the term that the value was read from; kUnbound if computed
    union {
        Int128 number = 0;  // mantissa; attoseconds of times and durations; 0 or 1 of booleans
        double real;        // Float, Double, Huge (approximately)
    };
    std::string_view text;  // IRI, string, or lexical form of Malformed, Huge and Opaque
    std::string_view tag;   // language tag; datatype IRI of Malformed, Huge, Opaque, derived integers

    bool error() const { return type == ValueType::Error; }
    bool numeric() const { return type >= ValueType::Integer && type <= ValueType::Double; }
    bool literal() const { return type > ValueType::Blank; }
    bool textual() const { return type == ValueType::String || type == ValueType::LangString; }

    Decimal decimal() const { return {number, scale}; }
    Moment moment() const { return {number, timezone}; }
    Duration duration() const { return {months, number}; }
    bool truth() const { return number != 0; }

    static Value boolean(bool value) { return of(ValueType::Boolean, value ? 1 : 0); }
    static Value integer(Int128 value) { return of(ValueType::Integer, value); }
    static Value decimal(Decimal value) {
        Value out = of(ValueType::Decimal, value.mantissa);
        out.scale = value.scale;
        return out;
    }
    static Value of_real(ValueType type, double value) {
        Value out;
        out.type = type;
        out.real = value;
        return out;
    }
    static Value moment(ValueType type, Moment value) {
        Value out = of(type, value.local);
        out.timezone = value.timezone;
        return out;
    }
    static Value duration(ValueType type, Duration value) {
        Value out = of(type, value.seconds);
        out.months = value.months;
        return out;
    }
    static Value string(std::string_view text) { return of_text(ValueType::String, text, {}); }
    static Value iri(std::string_view text) { return of_text(ValueType::Iri, text, {}); }
    /// A string with the language tag of `like`, if it has one.
    static Value string_like(const Value& like, std::string_view text) { return of_text(like.type, text, like.tag); }
    static Value of_text(ValueType type, std::string_view text, std::string_view tag) {
        Value out;
        out.type = type;
        out.text = text;
        out.tag = tag;
        return out;
    }

private:
    static Value of(ValueType type, Int128 number) {
        Value out;
        out.type = type;
        out.number = number;
        return out;
    }
};

/// Three-valued logic (SPARQL 1.1 §17.2).
enum class Truth : std::uint8_t { False = 0, True = 1, Error = 2 };
inline Truth truth(bool value) { return value ? Truth::True : Truth::False; }
inline Value to_value(Truth value) { return value == Truth::Error ? Value{} : Value::boolean(value == Truth::True); }

/// The value of a term; the result's texts point into `term`.
Value parse_value(const TermView& term);
/// The value of an inline number, boolean, date or dateTime, without its text; Error for other ids.
void inline_value(TermId id, Value& out);

/// The datatype IRI of a literal. Returns xsd:integer for a derived integer that was read from a term. The term itself
/// has the IRI of the derived type.
std::string_view datatype_iri(const Value& value);

/// The canonical spelling of a computed literal, or its text (also of IRIs). The result may point into `scratch`.
std::string_view canonical_text(const Value& value, std::string& scratch);

/// Effective boolean value (§17.2.2).
Truth effective_boolean(const Value& value);

}  // namespace penstock::expr
