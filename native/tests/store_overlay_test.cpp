// An overlay reads like a store that has committed its changes.
#include "store/overlay.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "memory_source.hpp"
#include "store_fixture.hpp"

namespace penstock::test {
namespace {

using Triple = std::tuple<TermId, Label, TermId>;

constexpr std::uint64_t kVertices = 12, kLabels = 4;

std::set<Triple> triples(const std::vector<Edge>& edges) {
    std::set<Triple> out;
    for (const Edge& edge : edges) EXPECT_TRUE(out.emplace(edge.subject, edge.label, edge.object).second);
    return out;
}

/// Compares every kind of read with a source that holds `expected`.
void expect_equal(const Source& overlay, const std::set<Triple>& expected, LabelTable& table,
                  const std::vector<Label>& labels) {
    MemorySource model(table);
    for (const auto& [s, label, o] : expected) model.add(s, table.predicate(label), o);
    std::vector<TermId> keys;
    for (std::uint64_t v = 0; v < kVertices; ++v) keys.push_back(iri(v));
    std::vector<Label> present;
    overlay.labels(present);
    for (const Label label : labels) {
        std::vector<TermId> subjects, objects;
        overlay.edges(label, subjects, objects);
        std::vector<Edge> edges;
        for (std::size_t i = 0; i < subjects.size(); ++i) edges.push_back({subjects[i], label, objects[i]});
        std::set<Triple> of_label;
        for (const Triple& triple : expected)
            if (std::get<1>(triple) == label) of_label.insert(triple);
        EXPECT_EQ(triples(edges), of_label);
        EXPECT_EQ(overlay.stats(label).edges, of_label.size());
        EXPECT_EQ(overlay.has_edges(label), !of_label.empty());
        if (!of_label.empty()) {
            EXPECT_EQ(std::count(present.begin(), present.end(), label), 1);
        }
        for (const Dir dir : {Dir::Out, Dir::In}) {
            Matches matches;
            overlay.expand(keys, label, dir, matches);
            EXPECT_TRUE(std::is_sorted(matches.rows.begin(), matches.rows.end()));
            EXPECT_EQ(sorted(vertices(overlay, label, dir)), sorted(vertices(model, label, dir)));
            for (const TermId key : keys) {
                EXPECT_EQ(sorted(neighbours(overlay, key, label, dir)), sorted(neighbours(model, key, label, dir)));
                EXPECT_EQ(overlay.degree(key, label, dir), model.degree(key, label, dir));
            }
        }
        for (const TermId subject : keys) {
            const std::vector<TermId> same(keys.size(), subject);
            std::vector<std::uint8_t> found(keys.size(), 0), expected_bits(keys.size(), 0);
            found[0] = expected_bits[0] = 1;  // contains() only sets
            overlay.contains(same, label, keys, found);
            model.contains(same, label, keys, expected_bits);
            EXPECT_EQ(found, expected_bits);
        }
    }
    for (const Dir dir : {Dir::Out, Dir::In})
        for (const TermId key : keys) {
            auto found = labels_of(overlay, key, dir), expected_bits = labels_of(model, key, dir);
            std::sort(found.begin(), found.end());
            EXPECT_EQ(found, expected_bits);
        }
}

TEST(StoreOverlay, ReadsLikeAStoreWithItsChanges) {
    std::mt19937_64 random(1);
    for (int round = 0; round < 60; ++round) {
        Fixture fixture(1 + random() % 3);
        std::vector<Label> labels;
        for (std::uint64_t p = 0; p < kLabels; ++p) labels.push_back(fixture.label(p));
        const auto some = [&](std::size_t most) {
            std::vector<Edge> edges(random() % (most + 1));
            for (Edge& edge : edges)
                edge = {iri(random() % kVertices), labels[random() % kLabels], iri(random() % kVertices)};
            return edges;
        };
        const auto stored = some(40);
        fixture.add(stored);
        const auto view = fixture.store->view();
        std::set<Triple> base;
        for (const Edge& edge : stored) base.emplace(edge.subject, edge.label, edge.object);
        std::set<Triple> expected = base;
        Overlay overlay(*view);
        for (int step = 0; step < 4; ++step) {
            const auto added = some(20), removed = some(random() % 2 ? 0 : 40);
            overlay.add(added);
            for (const Edge& edge : added) expected.emplace(edge.subject, edge.label, edge.object);
            overlay.remove(removed);
            for (const Edge& edge : removed) expected.erase({edge.subject, edge.label, edge.object});
            expect_equal(overlay, expected, fixture.store->labels(), labels);
        }
        std::set<Triple> net = base;
        for (const Triple& triple : triples(overlay.removed())) EXPECT_EQ(net.erase(triple), 1u);
        for (const Triple& triple : triples(overlay.added())) EXPECT_TRUE(net.insert(triple).second);
        EXPECT_EQ(net, expected);
    }
}

}  // namespace
}  // namespace penstock::test
