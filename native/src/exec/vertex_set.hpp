// A small set of vertices as a hash table, for tests of many rows against the vertices of a label with few edges.
#pragma once

#include <bit>
#include <cstddef>
#include <span>
#include <vector>

#include "mix.hpp"
#include "rdf/term.hpp"

namespace penstock::exec {

class VertexSet {
public:
    void assign(std::span<const TermId> vertices) {
        places_.assign(std::bit_ceil(kPlacesPerVertex * vertices.size() + 1), kUnbound);
        for (const TermId vertex : vertices) places_[place_of(vertex)] = vertex;
    }
    bool contains(TermId vertex) const { return vertex != kUnbound && places_[place_of(vertex)] == vertex; }

private:
    static constexpr std::size_t kPlacesPerVertex = 4;

    /// The place of a vertex, or the free place for it.
    std::size_t place_of(TermId vertex) const {
        const std::size_t mask = places_.size() - 1;
        std::size_t place = penstock::mix(vertex) & mask;
        while (places_[place] != kUnbound && places_[place] != vertex) place = (place + 1) & mask;
        return place;
    }

    std::vector<TermId> places_;  // kUnbound: free
};

}  // namespace penstock::exec
