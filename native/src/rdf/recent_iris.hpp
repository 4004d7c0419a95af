// A small cache from the spelling of an IRI to what the reader knows about it: in RDF documents most predicates, types
// and graphs, and many subjects, were seen a few lines before. Saves the dictionary's hash and two or three cache
// misses.
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

/// A term of the batch at hand: its id, or, until the batch is interned, its place among the batch's new terms.
struct PendingTerm {
    static constexpr std::uint32_t kKnown = 0xFFFFFFFF;
    TermId id = kUnbound;
    std::uint32_t place = kKnown;
};

/// Direct-mapped; texts must stay where they are while it is used.
class RecentIris {
public:
    struct Cell {
        std::string_view text;
        PendingTerm term;

        bool holds(std::string_view wanted) const { return text == wanted && !text.empty(); }
    };

    /// Small for small documents: a message of two triples must not pay for a table that it cannot use.
    explicit RecentIris(std::size_t document_bytes)
        : cells_(std::bit_ceil(std::clamp<std::size_t>(document_bytes / 64, 8, kMaxCells))) {}

    /// The cell for that text: where it holds(text), cell.term is what is known of it; else the caller may fill it.
    Cell& cell(std::string_view text) { return cells_[hash_bytes(text.data(), text.size(), 0) & (cells_.size() - 1)]; }
    void fill(Cell& cell, std::string_view text, PendingTerm term) {
        cell = {text, term};
        if (term.place != PendingTerm::kKnown) filled_.push_back(&cell);
    }
    /// The batch was interned: ids[place] is the id of each term.
    void resolve(const TermId* ids) {
        for (Cell* cell : filled_)
            if (cell->term.place != PendingTerm::kKnown) cell->term = {ids[cell->term.place], PendingTerm::kKnown};
        filled_.clear();
    }
    /// Terms from `place` on were taken back.
    void forget_from(std::uint32_t place) {
        for (Cell* cell : filled_)
            if (cell->term.place != PendingTerm::kKnown && cell->term.place >= place) *cell = {};
    }

private:
    static constexpr std::size_t kMaxCells = 1024;

    std::vector<Cell> cells_;    // a power of two of them
    std::vector<Cell*> filled_;  // cells that hold a place
};

}  // namespace penstock
