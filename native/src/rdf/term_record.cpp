#include "rdf/term_record.hpp"

#include <array>
#include <string>

#include "errors.hpp"
#include "rdf/hash.hpp"

namespace penstock {
namespace {

// The order is part of the saved dictionary's format: append only.
constexpr std::array<std::string_view, 45> kKnownDatatypes = {
    "http://www.w3.org/2001/XMLSchema#string",
    "http://www.w3.org/2001/XMLSchema#double",
    "http://www.w3.org/2001/XMLSchema#decimal",
    "http://www.w3.org/2001/XMLSchema#dateTime",
    "http://www.w3.org/2001/XMLSchema#integer",
    "http://www.w3.org/2001/XMLSchema#float",
    "http://www.w3.org/2001/XMLSchema#boolean",
    "http://www.w3.org/2001/XMLSchema#date",
    "http://www.w3.org/2001/XMLSchema#time",
    "http://www.w3.org/2001/XMLSchema#gYear",
    "http://www.w3.org/2001/XMLSchema#gYearMonth",
    "http://www.w3.org/2001/XMLSchema#gMonth",
    "http://www.w3.org/2001/XMLSchema#gMonthDay",
    "http://www.w3.org/2001/XMLSchema#gDay",
    "http://www.w3.org/2001/XMLSchema#duration",
    "http://www.w3.org/2001/XMLSchema#dayTimeDuration",
    "http://www.w3.org/2001/XMLSchema#yearMonthDuration",
    "http://www.w3.org/2001/XMLSchema#dateTimeStamp",
    "http://www.w3.org/2001/XMLSchema#anyURI",
    "http://www.w3.org/2001/XMLSchema#hexBinary",
    "http://www.w3.org/2001/XMLSchema#base64Binary",
    "http://www.w3.org/2001/XMLSchema#normalizedString",
    "http://www.w3.org/2001/XMLSchema#token",
    "http://www.w3.org/2001/XMLSchema#language",
    "http://www.w3.org/2001/XMLSchema#Name",
    "http://www.w3.org/2001/XMLSchema#NCName",
    "http://www.w3.org/2001/XMLSchema#NMTOKEN",
    "http://www.w3.org/2001/XMLSchema#long",
    "http://www.w3.org/2001/XMLSchema#int",
    "http://www.w3.org/2001/XMLSchema#short",
    "http://www.w3.org/2001/XMLSchema#byte",
    "http://www.w3.org/2001/XMLSchema#nonNegativeInteger",
    "http://www.w3.org/2001/XMLSchema#positiveInteger",
    "http://www.w3.org/2001/XMLSchema#nonPositiveInteger",
    "http://www.w3.org/2001/XMLSchema#negativeInteger",
    "http://www.w3.org/2001/XMLSchema#unsignedLong",
    "http://www.w3.org/2001/XMLSchema#unsignedInt",
    "http://www.w3.org/2001/XMLSchema#unsignedShort",
    "http://www.w3.org/2001/XMLSchema#unsignedByte",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#HTML",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#XMLLiteral",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#JSON",
    "http://www.w3.org/1999/02/22-rdf-syntax-ns#PlainLiteral",
    "http://www.opengis.net/ont/geosparql#wktLiteral",
    "http://www.opengis.net/ont/geosparql#gmlLiteral",
};

void check_length(std::string_view text, std::size_t limit, const char* what) {
    if (text.size() <= limit) return;
    throw LimitError(std::string(what) + " of " + std::to_string(text.size()) + " bytes; the limit is " +
                     std::to_string(limit));
}

}  // namespace

std::uint8_t record_type_of(std::string_view datatype) {
    for (std::size_t i = 0; i < kKnownDatatypes.size(); ++i)
        if (datatype == kKnownDatatypes[i]) return static_cast<std::uint8_t>(RecordType::kFirstKnown + i);
    return RecordType::kOther;
}

std::string_view known_datatype(std::uint8_t type) {
    const std::size_t index = std::size_t{type} - RecordType::kFirstKnown;
    return index < kKnownDatatypes.size() ? kKnownDatatypes[index] : std::string_view{};
}

TermKey::TermKey(const TermView& term, std::uint64_t seed) : lexical(term.lexical) {
    check_length(lexical, kMaxTermBytes, "a term");
    switch (term.kind) {
        case Kind::Iri:
            type = RecordType::kIri;
            break;
        case Kind::Literal:
            if (!term.lang.empty()) {
                type = RecordType::kLang;
                extra = term.lang;
                lower = has_upper_case(extra);
            } else if (term.datatype.empty()) {
                type = RecordType::kFirstKnown;  // xsd:string
            } else {
                type = record_type_of(term.datatype);
                if (type == RecordType::kOther) extra = term.datatype;
            }
            check_length(extra, kMaxExtraBytes, "a datatype IRI or language tag");
            break;
        default:
            throw DataError("only IRIs and literals have dictionary entries");
    }
    hash = hash_bytes(lexical.data(), lexical.size(), seed + type);
    if (lower) {
        const std::string tag = lower_case(extra);
        hash = hash_bytes(tag.data(), tag.size(), hash);
    } else if (!extra.empty()) {
        hash = hash_bytes(extra.data(), extra.size(), hash);
    }
}

}  // namespace penstock
