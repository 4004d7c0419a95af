// The templates of an update: quads with variables. Each solution of the update's pattern makes an instance of the
// quads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "rdf/term.hpp"

namespace penstock::query {

/// The content of a place of a template's quad: 0 for the default graph, 2 * i + 1 for constant i, and 2 * i + 2 for
/// column i of the solutions.
using Place = std::uint32_t;

/// Quads in columns; `g` is 0 for the default graph.
struct QuadRows {
    std::vector<TermId> s, p, o, g;
};

struct Solutions {
    std::span<const TermId> constants;
    std::span<const std::span<const TermId>> columns;  // of `rows` ids each
    std::size_t rows;
};

/// The instances of the quads of a template, without the instances that are not valid RDF (SPARQL 1.1 Update, §3.1.3).
/// `template_places`: four places per quad (s, p, o, g). `stored`: a graph name that denotes the default graph, or 0.
/// Throws std::out_of_range if a place names no constant or column.
QuadRows instances(std::span<const Place> template_places, const Solutions& solutions, TermId stored);

}  // namespace penstock::query
