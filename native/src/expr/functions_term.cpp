// Functions on RDF terms (SPARQL 1.1 §17.4.2).
#include <algorithm>
#include <array>

#include "expr/compare.hpp"
#include "expr/datatypes.hpp"
#include "expr/functions.hpp"

namespace penstock::expr {
namespace {

Value is_iri(Call&, std::span<const Value> args) { return Value::boolean(args[0].type == ValueType::Iri); }
Value is_blank(Call&, std::span<const Value> args) { return Value::boolean(args[0].type == ValueType::Blank); }
Value is_literal(Call&, std::span<const Value> args) { return Value::boolean(args[0].literal()); }
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

}  // namespace

std::span<const FunctionEntry> term_functions() {
    static constexpr FunctionEntry kEntries[] = {
        {"isiri", 1, 1, is_iri},         {"isblank", 1, 1, is_blank}, {"isliteral", 1, 1, is_literal},
        {"isnumeric", 1, 1, is_numeric}, {"str", 1, 1, str},          {"lang", 1, 1, lang},
        {"datatype", 1, 1, datatype},
    };
    return kEntries;
}

}  // namespace penstock::expr
