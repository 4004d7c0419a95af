// What a view tells about its difference to an earlier view that was retained.
#include <gtest/gtest.h>

#include <random>

#include "changing_source.hpp"
#include "store_fixture.hpp"

namespace penstock {
namespace {

using test::Fixture;
using test::iri;
using test::Model;

constexpr std::size_t kAll = std::size_t{1} << 20;

const SnapshotSource& snapshot(const std::unique_ptr<Source>& view) {
    return dynamic_cast<const SnapshotSource&>(*view);
}

Model::Edges set_of(const std::vector<LabelledEdge>& edges) {
    Model::Edges set;
    for (const LabelledEdge& edge : edges) set.insert({edge.s, edge.label, edge.o});
    return set;
}

Model::Edges missing(const Model::Edges& from, const Model::Edges& in, Label label) {
    Model::Edges set;
    for (const auto& edge : from)
        if (!in.contains(edge) && std::get<1>(edge) == label) set.insert(edge);
    return set;
}

class Random {
public:
    explicit Random(unsigned seed) : engine_(seed) {}
    unsigned below(unsigned n) { return static_cast<unsigned>(engine_() % n); }
    std::vector<Edge> edges(const std::vector<Label>& labels) {
        std::vector<Edge> out;
        for (unsigned i = below(5) + 1; i > 0; --i)
            out.push_back({iri(below(4)), labels[below(static_cast<unsigned>(labels.size()))], iri(below(4))});
        return out;
    }

private:
    std::mt19937 engine_;
};

TEST(StoreChanges, AreTheDifferenceOfTwoViews) {
    std::size_t known = 0;
    for (unsigned seed = 0; seed < 300; ++seed) {
        Random random(seed);
        Fixture f(1 + seed % 3);
        const std::vector<Label> labels{f.label(0), f.label(1)};
        const std::span<const Label> one(labels.data(), 1);
        Model model;
        std::int64_t batches[3] = {0, 0, 0}, bounds[3] = {0, 0, 0};
        std::shared_ptr<SnapshotSource::Retained> retained;
        Model::Edges before;
        for (int step = 0; step < 40; ++step) {
            const std::vector<Edge> edges = random.edges(labels), others = random.edges(labels);
            const unsigned stream = random.below(3);
            const CommitSource source{stream, stream == 0 ? 0 : ++batches[stream]};
            if (stream != 0 || random.below(2) == 0) {
                f.store->commit(edges, source);
                model.add(f.store->latest(), edges, source);
            } else {
                const Changed done = f.store->change(others, edges, source);
                model.remove(done.snapshot, others, source);
                model.add(done.snapshot, edges, source);
            }
            if (random.below(3) != 0) continue;
            std::vector<StreamBound> view_bounds;
            for (unsigned i = 1; i < 3; ++i) {
                bounds[i] = std::min(batches[i], bounds[i] + random.below(4));
                if (random.below(4) != 0) view_bounds.push_back({i, bounds[i]});
            }
            const auto view = f.store->view(view_bounds);
            const Model::Edges now = model.visible(f.store->latest(), view_bounds);
            const auto held = retained == nullptr ? nullptr : retained->get();
            EdgeChanges changes;
            if (held != nullptr && snapshot(view).changes_since(*held, one, kAll, changes)) {
                ++known;
                ASSERT_EQ(set_of(changes.added), missing(now, before, labels[0])) << "seed " << seed;
                ASSERT_EQ(set_of(changes.removed), missing(before, now, labels[0])) << "seed " << seed;
            }
            retained = snapshot(view).retain();
            before = now;
        }
    }
    EXPECT_GT(known, 1'000u);
}

TEST(StoreChanges, AreUnknownBeyondALimitOrAfterALoad) {
    Fixture f;
    const std::vector<Label> labels{f.label(0)};
    f.add({{iri(0), labels[0], iri(1)}});
    const auto first = f.store->view();
    auto retained = snapshot(first).retain();
    f.add({{iri(1), labels[0], iri(1)}, {iri(2), labels[0], iri(1)}});
    EdgeChanges changes;
    const auto second = f.store->view();
    EXPECT_FALSE(snapshot(second).changes_since(*retained->get(), labels, 1, changes));
    EXPECT_TRUE(snapshot(second).changes_since(*retained->get(), labels, 2, changes));
    EXPECT_EQ(changes.added.size(), 2u);

    std::vector<Edge> many;
    for (std::uint64_t i = 0; i < 70'000; ++i) many.push_back({iri(i), labels[0], iri(7)});
    f.add(many);
    EXPECT_EQ(retained->get(), nullptr) << "so many edges are not recorded";
    const auto third = f.store->view();
    EXPECT_FALSE(snapshot(third).changes_since(*second, labels, kAll, changes));
}

TEST(StoreChanges, ARetainedViewEndsWithTheStore) {
    auto f = std::make_unique<Fixture>();
    f->add({{iri(0), f->label(0), iri(1)}});
    auto view = f->store->view();
    const auto retained = snapshot(view).retain();
    view = nullptr;
    f = nullptr;
    EXPECT_EQ(retained->get(), nullptr);
}

TEST(StoreChanges, ACommitIsRecordedOnlyForRetainedViews) {
    Fixture f;
    const std::vector<Label> labels{f.label(0)};
    f.add({{iri(0), labels[0], iri(1)}});
    const auto view = f.store->view();
    snapshot(view).retain();  // released at once
    f.add({{iri(1), labels[0], iri(1)}});
    const auto next = f.store->view();
    EdgeChanges changes;
    EXPECT_FALSE(snapshot(next).changes_since(*view, labels, kAll, changes));
}

TEST(StoreChanges, OfCommitsBeforeARestartAreUnknown) {
    Fixture f;
    const Label label = f.label(0);
    for (std::int64_t batch = 1; batch <= 2; ++batch) {
        const std::vector<Edge> edges{{iri(0), label, iri(static_cast<std::uint64_t>(batch))}};
        f.store->commit(edges, CommitSource{1, batch});
    }
    f.store->save(f.scratch / "saved");
    f.store.reset();
    f.store = Store::open(f.scratch / "saved", f.scratch / "again", test::kReserve);
    const StreamBound bounds[]{{1, 1}};
    const auto early = f.store->view(bounds), late = f.store->view();
    const auto retained = snapshot(early).retain();
    ASSERT_NE(retained, nullptr);
    EdgeChanges changes;
    EXPECT_FALSE(snapshot(late).changes_since(*retained->get(), {&label, 1}, kAll, changes));
}

}  // namespace
}  // namespace penstock
