// Remote views of lists that are rewritten: words of two versions, and memory that is used again.
#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <tuple>
#include <vector>

#include "remote_fixture.hpp"
#include "store/lookup.hpp"

namespace penstock::test {
namespace {

/// What a view shows if the words of its `number`-th read are of two moments, between which a commit rewrites lists,
/// and perhaps removes more values. Returns whether there was such a read.
bool expect_same_lists(std::size_t number, bool heads_are_earlier, bool removes_more, bool caches) {
    NodesFixture fixture(1, 1, true, caches ? remote::RemoteStore::kKnownBytes : 0);
    const Label label = fixture.label(1);
    std::vector<Edge> edges, removed;
    for (std::uint64_t k = 0; k < 40; ++k) edges.push_back({iri(1), label, iri(10 + k)});
    for (std::uint64_t k = 0; k < 40; k += 2) removed.push_back(edges[k]);
    fixture.apply(0, 1, edges, {});
    fixture.apply(0, 2, removed, {{iri(2), label, iri(3)}}, {});
    fixture.apply(0, 3, {}, {});
    const auto view = fixture.remote->view();
    fixture.renew();  // commit 2 is before the floor
    CopyingPlane& plane = *fixture.copies[0];
    std::size_t posts = 0;
    plane.tears = [&] { return posts++ == number; };
    plane.meanwhile = [&] {
        const std::vector<Edge> more{edges[1]};
        fixture.apply(0, 4, removes_more ? more : std::vector<Edge>{},
                      {{iri(1), label, iri(4)}, {iri(5), label, iri(6)}}, {});
    };
    plane.earlier = [&](std::uint64_t before, std::uint64_t after) {
        const bool is_head = layout::is_extent(before) || layout::is_extent(after);
        return is_head == heads_are_earlier;
    };
    std::vector<TermId> expected;
    for (std::uint64_t k = 1; k < 40; k += 2) expected.push_back(iri(10 + k));
    for (int i = 0; i < 2; ++i) {
        EXPECT_EQ(neighbours(*view, iri(1), label, Dir::Out), expected);
        EXPECT_EQ(view->degree(iri(1), label, Dir::Out), expected.size());
        EXPECT_TRUE(has(*view, iri(1), label, iri(49)));
        EXPECT_FALSE(has(*view, iri(1), label, iri(48)));
        EXPECT_EQ(vertices(*view, label, Dir::Out), (std::vector{iri(1), iri(2)}));
        EXPECT_EQ(labels_of(*view, iri(1), Dir::Out), std::vector{label});
    }
    return fixture.stores[0]->latest() == 4;
}

class RemoteRewritten : public testing::TestWithParam<std::tuple<bool, bool, bool>> {};

TEST_P(RemoteRewritten, ReadsHeadAndStateOfTwoVersionsOfAList) {
    const auto [heads_are_earlier, removes_more, caches] = GetParam();
    std::size_t number = 0;
    for (bool torn = true; torn && !HasFailure(); ++number) {
        SCOPED_TRACE("read " + std::to_string(number));
        torn = expect_same_lists(number, heads_are_earlier, removes_more, caches);
    }
    EXPECT_GT(number, caches ? 10u : 20u);
}

INSTANTIATE_TEST_SUITE_P(Words, RemoteRewritten, testing::Combine(testing::Bool(), testing::Bool(), testing::Bool()));

struct Memory {
    const std::byte* base;
    template <class T>
    const T& at(layout::Offset offset, std::uint64_t = 0) const {
        return *reinterpret_cast<const T*>(base + offset);
    }
};

/// The head of the list of vertex 1, in the shard of the only node.
TermId head_now(const NodesFixture& fixture, Label label) {
    const dataplane::MappedRegion region(fixture.directory(0) + "/shard-0.region", kReserve);
    const Memory memory{region.data()};
    const std::uint64_t hash = layout::record_hash(memory.at<layout::Header>(0).seed, iri(1), Dir::Out);
    const layout::Offset record = lookup::find_record(memory, lookup::current_bucket(memory, hash), iri(1), Dir::Out);
    return memory.at<layout::Entry>(lookup::find_entry(memory, record, iri(1), label, Dir::Out)).head;
}

TEST(RemoteRewrittenLists, AListThatHasItsFormerMemoryAgainIsRead) {
    NodesFixture fixture(1, 1, true);
    const Label label = fixture.label(1);
    std::deque<TermId> values;
    std::uint64_t next = 10, recurred = 0;
    Snapshot at = 0;
    for (; values.size() < 8; ++next) values.push_back(iri(next));
    for (const TermId value : values) fixture.apply(0, ++at, {{iri(1), label, value}}, {});
    TermId head = 0;
    for (int round = 0; round < 200; ++round) {
        for (int changes = 0; changes < 1 + round % 3; ++changes) {
            const TermId old = values.front();
            values.pop_front();
            values.push_back(iri(next++));
            fixture.apply(0, ++at, {{iri(1), label, old}}, {{iri(1), label, values.back()}}, {});
            for (int others = 0; others < 4; ++others) {
                fixture.apply(0, ++at, {{iri(2), label, iri(next++)}}, {});
                fixture.remote->view();
                fixture.renew();
            }
        }
        const auto view = fixture.remote->view();
        ASSERT_EQ(neighbours(*view, iri(1), label, Dir::Out), std::vector<TermId>(values.begin(), values.end()));
        const TermId now = head_now(fixture, label);
        recurred += now == head;
        head = now;
    }
    EXPECT_GT(recurred, 0u);
}

}  // namespace
}  // namespace penstock::test
