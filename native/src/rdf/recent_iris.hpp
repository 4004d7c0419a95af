// A small cache that maps the spelling of an IRI to the reader's term. In RDF documents, most predicates, types and
// graphs, and many subjects, recur within a few lines. A hit saves the computation of the dictionary's hash and two or
// three cache misses.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "rdf/hash.hpp"
#include "rdf/term.hpp"

namespace penstock {

/// A term of the current batch: its id, or, until the batch is interned, its index among the batch's new terms.
struct PendingTerm {
    static constexpr std::uint32_t kKnown = 0xFFFFFFFF;
    TermId id = kUnbound;
    std::uint32_t place = kKnown;
};

/// Direct-mapped. Texts must not move while the cache is used.
class RecentIris {
public:
    struct Cell {
        std::string_view text;
        PendingTerm term;

        bool holds(std::string_view sought) const { return text == sought && !text.empty(); }
    };

    /// Small documents get a small cache, because a large table would be too expensive for a message of two triples.
    explicit RecentIris(std::size_t document_bytes)
        : cells_(std::bit_ceil(std::clamp<std::size_t>(document_bytes / 64, 8, kMaxCells))) {}

    /// The cell for a text. If cell.holds(text), cell.term is valid; otherwise the caller may fill the cell.
    Cell& cell(std::string_view text) { return cells_[hash_bytes(text.data(), text.size(), 0) & (cells_.size() - 1)]; }
    void fill(Cell& cell, std::string_view text, PendingTerm term) {
        cell = {text, term};
        if (term.place != PendingTerm::kKnown) filled_.push_back(&cell);
    }
    /// Called after the batch is interned: ids[place] is the id of each term.
    void resolve(const TermId* ids) {
        for (Cell* cell : filled_)
            if (cell->term.place != PendingTerm::kKnown) cell->term = {ids[cell->term.place], PendingTerm::kKnown};
        filled_.clear();
    }
    /// Called after the terms from `place` on were removed from the batch.
    void forget_from(std::uint32_t place) {
        for (Cell* cell : filled_)
            if (cell->term.place != PendingTerm::kKnown && cell->term.place >= place) *cell = {};
    }

private:
    static constexpr std::size_t kMaxCells = 1024;

    std::vector<Cell> cells_;    // the size is a power of two
    std::vector<Cell*> filled_;  // cells that refer to a place
};

}  // namespace penstock
