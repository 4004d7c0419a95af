// The compiled form of a mapping, as libs/penstock/mapping/native_program.py passes it (ADR 83).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rdf/term.hpp"
#include "spec.hpp"

namespace penstock::mapping {

/// Thrown for a message that this code does not map. The executor in Python then maps the message, or raises an error
/// with the reason.
struct Declined {};

/// The names of members and columns that a program refers to, by number.
class Names {
public:
    static constexpr std::uint32_t kNone = 0xFFFFFFFF;

    std::uint32_t add(const std::string& name);
    std::uint32_t find(std::string_view name) const {
        const auto it = numbers_.find(name);
        return it == numbers_.end() ? kNone : it->second;
    }
    std::size_t size() const { return numbers_.size(); }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::unordered_map<std::string, std::uint32_t, Hash, std::equal_to<>> numbers_;
};

struct Step {
    enum class Kind : std::uint8_t { Member, Element, FromEnd, All };
    Kind kind;
    std::uint64_t number = 0;  // the name of the member, or the index; from the end, the last element is 1
};
using Path = std::vector<Step>;

/// A constant text, or a reference.
struct Part {
    enum class Kind : std::uint8_t { Text, Path, Column, Timestamp };
    Kind kind;
    std::string text;
    Path path;
    std::uint32_t column = 0;
    bool single = true;  // at most one value
};

struct Term {
    enum class Kind : std::uint8_t { Iri, Uri, Unsafe, Blank, Literal };
    Kind kind;
    std::vector<Part> parts;
    bool is_template = false;
    bool is_fresh = false;                  // a new blank node for each record
    std::optional<std::uint32_t> constant;  // its place in Program::constants
    std::unique_ptr<Term> datatype;
    std::unique_ptr<Term> language;
    std::optional<std::string> base;
    bool single = true;       // no part, datatype or language has several values
    bool has_scheme = false;  // the first part is a text with a scheme
    bool is_valid = false;    // an IRI for all values: they are percent-encoded, behind a scheme and an authority
};

struct Statement {
    std::vector<Term> predicates;
    std::vector<Term> objects;
};

struct Rule {
    Path iterator;
    Term subject;
    std::vector<Statement> statements;
};

enum class Format : std::uint8_t { Json, JsonLines, Csv };
enum class TimeUnit : std::uint8_t { Iso8601, Seconds, Milliseconds, Microseconds };

/// The source of an event's time. Without a reference, the time of an event is the time of its message.
struct TimeRule {
    std::optional<Part> reference;
    TimeUnit unit = TimeUnit::Iso8601;
};

/// Immutable, and therefore thread-safe.
class Program {
public:
    /// Error if the spec is not a program.
    explicit Program(const Spec& spec);
    Program(const Program&) = delete;
    Program& operator=(const Program&) = delete;

    Format format = Format::Json;
    bool of_file = false;  // records need no time, and records without triples are left out
    Path events;
    TimeRule time;
    std::vector<Rule> rules;
    std::vector<TermView> constants;  // views of the texts of the program
    std::vector<std::string> nulls;   // texts of CSV cells without a value
    Names names;
    std::size_t max_depth = 0;
    std::size_t max_values = 0;
    // The maximum size of the triples of an event as N-Triples: `max_bytes` plus a multiple of the size of the event.
    std::size_t max_bytes = 0;
    std::size_t max_factor = 0;

private:
    Path path(const Spec& spec);
    Part part(const Spec& spec);
    Term term(const Spec& spec);
    std::vector<Term> terms(const Spec& spec);
    std::uint32_t constant(const std::string& text);

    std::vector<std::unique_ptr<std::string>> texts_;
};

/// Whether a text begins with the scheme of an IRI and a colon.
bool has_scheme(std::string_view text);

}  // namespace penstock::mapping
