// Parses N-Triples and N-Quads (W3C Recommendations of RDF 1.1) into columns of term ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "rdf/dictionary.hpp"

namespace penstock {

/// Blank nodes by label, for one document or message. The same label in another scope names another node.
class BlankScope {
public:
    /// The node with the given label; a fresh one if the label is new.
    TermId node(std::string_view label, Dictionary& dictionary) {
        const auto it = nodes_.find(label);
        if (it != nodes_.end()) return it->second;
        return nodes_.emplace(std::string(label), dictionary.fresh_blank()).first->second;
    }
    void set(std::string label, TermId id) { nodes_[std::move(label)] = id; }
    const auto& nodes() const { return nodes_; }

private:
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
    };
    std::unordered_map<std::string, TermId, Hash, std::equal_to<>> nodes_;
};

struct ParseOptions {
    bool quads = true;           // a fourth term is allowed
    bool timestamps = false;     // each line starts with an integer
    bool strict = true;          // the first bad line is a DataError
    std::size_t max_bad = 1000;  // maximum number of stored bad lines; further bad lines are only counted
    std::size_t max_term_bytes = std::size_t{16} << 20;  // longest IRI, label or string, escapes included
    std::uint64_t first_line = 1;             // number of the first line, for errors in a later part of a document
    Lifetime lifetime = Lifetime::Transient;  // of new dictionary entries
};

struct BadLine {
    std::uint64_t line;    // from options.first_line
    std::uint64_t column;  // from 1, in characters
    std::string bytes;     // the whole line, without its line end
    std::string reason;
};

/// One row per valid line.
struct QuadColumns {
    std::vector<TermId> subjects;
    std::vector<TermId> predicates;
    std::vector<TermId> objects;
    std::vector<TermId> graphs;            // kUnbound = default graph
    std::vector<std::int64_t> timestamps;  // only if options.timestamps
    std::vector<BadLine> bad;
    std::uint64_t bad_count = 0;  // includes those beyond max_bad
    std::uint64_t lines = 0;      // read, including blank ones
};

/// Parses a document, or a part of one that ends with a line end. DataError (strict): "line L, column C: reason".
/// Creates dictionary entries for new terms at the current tick and holds a lease meanwhile.
QuadColumns parse_nquads(Dictionary& dictionary, std::string_view document, const ParseOptions& options,
                         BlankScope& scope);

}  // namespace penstock
