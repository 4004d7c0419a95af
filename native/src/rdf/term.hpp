// Term ids: 64 bits, with a 4-bit tag on top and 60 bits of payload.
//
// A term is *inline* if its exact spelling can be rebuilt from the id; filters, aggregates and ORDER BY then use no
// strings. Every other term is an entry of the Dictionary. Each term has exactly one id. Joins, DISTINCT and sameTerm
// therefore compare ids. Comparisons by value use expr/value.hpp.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace penstock {

using TermId = std::uint64_t;

/// Not a term: an unbound cell of a binding table. Also the key of index vertices (Wukong §4.1).
inline constexpr TermId kUnbound = 0;

enum class Tag : std::uint8_t {
    Iri = 0,      // payload: dictionary slot, from 1
    Blank = 1,    // payload: number; its label is "b<number>", no string is stored
    Literal = 2,  // payload: dictionary slot
    Integer = 3,  // xsd:integer and its derived types
    Decimal = 4,
    Double = 5,
    Float = 6,
    Boolean = 7,
    DateTime = 8,
    Date = 9,
    String = 10,   // xsd:string of at most 7 bytes of UTF-8
    Local = 11,    // payload: index into the LocalTerms of one evaluation
    Removal = 14,  // never a term: a word of a neighbour list that removes or restores a value of the list
    Extent = 15,   // never a term: the store marks list offsets with it
};

inline constexpr int kTagShift = 60;
inline constexpr TermId kPayloadMask = (TermId{1} << kTagShift) - 1;

constexpr Tag tag_of(TermId id) { return static_cast<Tag>(id >> kTagShift); }
constexpr std::uint64_t payload_of(TermId id) { return id & kPayloadMask; }
constexpr TermId make_id(Tag tag, std::uint64_t payload) {
    return (static_cast<TermId>(tag) << kTagShift) | (payload & kPayloadMask);
}

enum class Kind : std::uint8_t { Unbound, Iri, Blank, Literal };

/// A term as text. Views point into the dictionary, into the caller's scratch buffer, or into parsed input. Literals
/// always have a datatype IRI (xsd:string for simple ones, rdf:langString with a language tag).
struct TermView {
    Kind kind = Kind::Unbound;
    std::string_view lexical;   // the IRI, the blank node's label, or the literal's lexical form
    std::string_view datatype;  // literals only
    std::string_view lang;      // literals only; in lower case in dictionary entries
};

inline constexpr std::string_view kXsd = "http://www.w3.org/2001/XMLSchema#";
inline constexpr std::string_view kXsdString = "http://www.w3.org/2001/XMLSchema#string";
inline constexpr std::string_view kRdfLangString = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString";

}  // namespace penstock
