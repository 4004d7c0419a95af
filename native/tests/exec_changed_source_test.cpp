// The edges of a change as a source, against an ordered set.
#include "exec/changed_source.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <tuple>
#include <vector>

namespace penstock::test {
namespace {

TEST(EdgeList, FindsEachEdgeOnce) {
    std::mt19937 random(7);
    exec::EdgeList list;
    for (std::size_t size : {0u, 1u, 5u, 300u, 4u}) {
        std::vector<LabelledEdge> parts[2];
        std::set<std::tuple<Label, TermId, TermId>> model;
        for (auto& part : parts) {
            for (std::size_t i = 0; i < size; ++i) {
                part.push_back({static_cast<Label>(random() % 3), random() % 20, random() % 20});
                model.insert({part.back().label, part.back().s, part.back().o});
            }
        }
        list.assign(parts[0], parts[1]);
        for (Label label = 0; label < 3; ++label) {
            for (TermId vertex = 0; vertex < 20; ++vertex) {
                std::vector<TermId> out, in, found;
                for (const auto& [l, s, o] : model) {
                    if (l == label && s == vertex) out.push_back(o);
                    if (l == label && o == vertex) in.push_back(s);
                }
                for (const auto& link : list.links(vertex, label, Dir::Out)) found.push_back(link.neighbour);
                EXPECT_EQ(found, out);
                found.clear();
                for (const auto& link : list.links(vertex, label, Dir::In)) found.push_back(link.neighbour);
                EXPECT_EQ(found, in);
                for (TermId object = 0; object < 20; ++object)
                    EXPECT_EQ(list.has(vertex, label, object), model.contains({label, vertex, object}));
            }
            std::vector<TermId> subjects, objects, vertices;
            list.edges(label, subjects, objects);
            std::set<std::tuple<Label, TermId, TermId>> edges;
            for (std::size_t i = 0; i < subjects.size(); ++i) edges.insert({label, subjects[i], objects[i]});
            EXPECT_EQ(edges.size(), subjects.size());
            std::erase_if(edges, [&](const auto& edge) { return model.contains(edge); });
            EXPECT_TRUE(edges.empty());
            EXPECT_EQ(static_cast<std::ptrdiff_t>(subjects.size()),
                      std::ranges::count_if(model, [&](const auto& edge) { return std::get<0>(edge) == label; }));
            list.vertices(label, Dir::In, vertices);
            EXPECT_EQ(std::set<TermId>(vertices.begin(), vertices.end()),
                      std::set<TermId>(objects.begin(), objects.end()));
            EXPECT_TRUE(std::ranges::is_sorted(vertices));
        }
    }
}

}  // namespace
}  // namespace penstock::test
