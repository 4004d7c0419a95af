// The memory layout of a dictionary entry: a word that describes it, then its text. A record never moves, and does not
// change between publication and release.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "rdf/language_tag.hpp"
#include "rdf/term.hpp"

namespace penstock {

/// The kind of a record: an IRI, a literal whose language tag or datatype IRI follows its lexical form, or a literal of
/// a well-known datatype (first_known + its number), which takes no space.
struct RecordType {
    static constexpr std::uint8_t kIri = 0;
    static constexpr std::uint8_t kLang = 1;
    static constexpr std::uint8_t kOther = 2;
    static constexpr std::uint8_t kFirstKnown = 3;
};
/// The record type of literals of the datatype: kFirstKnown or more, or kOther.
std::uint8_t record_type_of(std::string_view datatype);
/// Datatype IRI of a record type from kFirstKnown; empty if there is no such type.
std::string_view known_datatype(std::uint8_t type);

/// The limit of the text of one term, and of the datatype IRI or language tag of one literal.
inline constexpr std::size_t kMaxTermBytes = std::size_t{1} << 30;
inline constexpr std::size_t kMaxExtraBytes = (std::size_t{1} << 24) - 1;

/// A term prepared for the tables: normalised, hashed, and with its record type.
struct TermKey {
    std::string_view lexical;
    std::string_view extra;  // language tag or datatype IRI, if the record stores it
    std::uint8_t type = RecordType::kIri;
    // `extra` is a language tag with upper case letters; it is hashed, compared and written in lower case
    bool lower = false;
    std::uint64_t hash = 0;

    TermKey() = default;
    /// For IRIs and literals; an empty datatype means xsd:string, or rdf:langString with a language tag. Throws
    /// DataError for other kinds and LimitError for terms that are too long.
    TermKey(const TermView& term, std::uint64_t seed);

    std::size_t record_bytes() const;
    Tag tag() const { return type == RecordType::kIri ? Tag::Iri : Tag::Literal; }
};

class TermRecord {
public:
    /// Writes the record of `key` at `memory` (key.record_bytes() bytes, 8-aligned).
    static const TermRecord* write(void* memory, const TermKey& key) {
        auto* record = static_cast<TermRecord*>(memory);
        record->length_ = static_cast<std::uint32_t>(key.lexical.size());
        record->type_and_extra_ = key.type | (static_cast<std::uint32_t>(key.extra.size()) << 8);
        std::memcpy(record->text(), key.lexical.data(), key.lexical.size());
        if (!key.extra.empty()) {
            const std::string tag = key.lower ? lower_case(key.extra) : std::string();
            const char* extra = key.lower ? tag.data() : key.extra.data();
            std::memcpy(record->text() + key.lexical.size(), extra, key.extra.size());
        }
        return record;
    }

    std::uint8_t type() const { return static_cast<std::uint8_t>(type_and_extra_); }
    std::string_view lexical() const { return {text(), length_}; }
    std::string_view extra() const { return {text() + length_, type_and_extra_ >> 8}; }
    std::size_t bytes() const { return sizeof(TermRecord) + length_ + (type_and_extra_ >> 8); }
    Tag tag() const { return type() == RecordType::kIri ? Tag::Iri : Tag::Literal; }

    bool equals(const TermKey& key) const {
        return length_ == key.lexical.size() &&
               type_and_extra_ == (key.type | (static_cast<std::uint32_t>(key.extra.size()) << 8)) &&
               std::memcmp(text(), key.lexical.data(), length_) == 0 &&
               (key.extra.empty() ||
                (key.lower ? extra() == lower_case(key.extra)
                           : std::memcmp(text() + length_, key.extra.data(), key.extra.size()) == 0));
    }
    TermView view() const {
        switch (type()) {
            case RecordType::kIri:
                return {Kind::Iri, lexical(), {}, {}};
            case RecordType::kLang:
                return {Kind::Literal, lexical(), kRdfLangString, extra()};
            case RecordType::kOther:
                return {Kind::Literal, lexical(), extra(), {}};
            default:
                return {Kind::Literal, lexical(), known_datatype(type()), {}};
        }
    }

private:
    char* text() { return reinterpret_cast<char*>(this + 1); }
    const char* text() const { return reinterpret_cast<const char*>(this + 1); }

    std::uint32_t length_;
    std::uint32_t type_and_extra_;  // 8 | 24
};
static_assert(sizeof(TermRecord) == 8);

inline std::size_t TermKey::record_bytes() const { return sizeof(TermRecord) + lexical.size() + extra.size(); }

}  // namespace penstock
