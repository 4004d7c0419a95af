#include "query/quad_templates.hpp"

#include <stdexcept>

namespace penstock::query {
namespace {

/// The term at a place: of row i it is at `data[i * step]`.
struct Terms {
    const TermId* data;
    std::size_t step;

    TermId operator[](std::size_t row) const { return data[row * step]; }
};

constexpr TermId kDefaultGraph = 0;

Terms terms_at(Place place, const Solutions& solutions) {
    if (place == 0) return {&kDefaultGraph, 0};
    const std::size_t index = (place - 1) / 2;
    if (index >= (place % 2 != 0 ? solutions.constants.size() : solutions.columns.size()))
        throw std::out_of_range("a template names no constant or column");
    if (place % 2 != 0) return {&solutions.constants[index], 0};
    return {solutions.columns[index].data(), 1};
}

bool is_iri(TermId id) { return id != kUnbound && tag_of(id) == Tag::Iri; }

}  // namespace

QuadRows instances(std::span<const Place> template_places, const Solutions& solutions, TermId stored) {
    QuadRows found;
    const std::size_t most = template_places.size() / 4 * solutions.rows;
    for (std::vector<TermId>* column : {&found.s, &found.p, &found.o, &found.g}) column->reserve(most);
    for (std::size_t i = 0; i + 4 <= template_places.size(); i += 4) {
        const Place graph = template_places[i + 3];
        const Terms s = terms_at(template_places[i], solutions), p = terms_at(template_places[i + 1], solutions),
                    o = terms_at(template_places[i + 2], solutions), g = terms_at(graph, solutions);
        for (std::size_t row = 0; row < solutions.rows; ++row) {
            if (!(is_iri(s[row]) || tag_of(s[row]) == Tag::Blank) || !is_iri(p[row]) || o[row] == kUnbound) continue;
            if (graph != 0 && !is_iri(g[row])) continue;
            found.s.push_back(s[row]);
            found.p.push_back(p[row]);
            found.o.push_back(o[row]);
            found.g.push_back(g[row] == stored ? kDefaultGraph : g[row]);
        }
    }
    return found;
}

}  // namespace penstock::query
