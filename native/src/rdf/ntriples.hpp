// N-Triples and N-Quads (W3C Recommendations of RDF 1.1) straight to columns of term ids.
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

/// Blank nodes by label, for one document or message. Labels of other scopes name other nodes.
class BlankScope {
public:
    /// The node of that label; a fresh one where it is new.
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
    bool quads = true;                                   // a fourth term is allowed
    bool timestamps = false;                             // each line begins with an integer
    bool strict = true;                                  // the first bad line is a DataError
    std::size_t max_bad = 1000;                          // bad lines that are kept; more are counted
    std::size_t max_term_bytes = std::size_t{16} << 20;  // longest IRI, label or string, escapes included
    std::uint64_t first_line = 1;                        // its number, for errors in a later part of a document
    Lifetime lifetime = Lifetime::Transient;             // of new dictionary entries
};

struct BadLine {
    std::uint64_t line;    // from options.first_line
    std::uint64_t column;  // from 1, in characters
    std::string bytes;     // the whole line, without its end
    std::string reason;
};

/// One row per good line.
struct QuadColumns {
    std::vector<TermId> subjects;
    std::vector<TermId> predicates;
    std::vector<TermId> objects;
    std::vector<TermId> graphs;            // kUnbound = default graph
    std::vector<std::int64_t> timestamps;  // only where they were asked for
    std::vector<BadLine> bad;
    std::uint64_t bad_count = 0;  // also those beyond max_bad
    std::uint64_t lines = 0;      // read, blank ones included
};

/// Parses a document, or a part of one that ends with a line end. DataError (strict): "line L, column C: reason".
/// New terms are entries of the dictionary at its current tick; a lease is held meanwhile.
QuadColumns parse_nquads(Dictionary& dictionary, std::string_view document, const ParseOptions& options,
                         BlankScope& scope);

}  // namespace penstock
