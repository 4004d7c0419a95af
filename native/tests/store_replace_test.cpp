// A graph whose content is replaced again and again: its size.
#include <gtest/gtest.h>

#include <deque>
#include <filesystem>
#include <random>

#include "store_fixture.hpp"

namespace penstock::test {
namespace {

std::uint64_t bytes_of(const std::string& directory) {
    std::uint64_t bytes = 0;
    for (const auto& file : std::filesystem::directory_iterator(directory)) bytes += file.file_size();
    return bytes;
}

enum class Replaced { Values, Entities, Lists };  // Lists: by values that have been there before

/// Replaces 1 % of the edges by each commit: the oldest ones by new ones.
class Replacement {
public:
    Replacement(Fixture& fixture, std::size_t edges, Replaced what)
        : fixture_(fixture), what_(what), whole_entities_(what == Replaced::Entities), size_(edges) {
        for (std::uint64_t l = 0; l < kLabels; ++l) labels_.push_back(fixture.label(1'000'000 + l));
        std::vector<Edge> all;
        while (edges_.size() < size_) all.push_back(next());
        fixture_.add(std::move(all));
    }
    void step() {
        std::vector<Edge> removed, added;
        for (std::size_t i = 0; i < size_ / 100; ++i) {
            removed.push_back(edges_.front());
            edges_.pop_front();
            added.push_back(next());
        }
        const Changed changed = fixture_.store->change(removed, added, {});
        ASSERT_EQ(changed.removed, removed.size());
        ASSERT_EQ(changed.added, added.size());
    }
    std::vector<Edge> content() const { return {edges_.begin(), edges_.end()}; }

private:
    static constexpr std::uint64_t kLabels = 4, kOfEntity = 8;
    /// Of an entity: a type, a link to an older entity, and numbers. Without whole_entities, entities stay, and only
    /// their numbers and links change.
    Edge next() {
        const std::uint64_t n = made_++, entity = n / kOfEntity;
        const std::uint64_t all = size_ / kOfEntity;
        const TermId subject = iri(whole_entities_ ? entity : entity % all);
        TermId object = make_id(Tag::Integer, what_ == Replaced::Lists ? n % (size_ + size_ / 4) : n);
        if (n % kOfEntity == 0) object = iri(2'000'000 + (whole_entities_ ? entity % 5 : n % 977));
        if (n % kOfEntity == 1) object = iri(whole_entities_ ? entity - entity % 7 : entity % (all - 1));
        edges_.push_back({subject, labels_[std::min(n % kOfEntity, kLabels - 1)], object});
        return edges_.back();
    }

    Fixture& fixture_;
    Replaced what_;
    bool whole_entities_;
    std::size_t size_;
    std::uint64_t made_ = 0;
    std::vector<Label> labels_;
    std::deque<Edge> edges_;
};

// Without the writer's hints, which take up to 4 MiB however large the graph is.
std::uint64_t memory(const Store& store) { return store.used_bytes() + store.log_bytes(); }

class StoreReplace : public testing::TestWithParam<Replaced> {};

TEST_P(StoreReplace, AGraphThatIsReplacedManyTimesStaysWithinTwiceItsSize) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    const std::size_t edges = 10'000, steps = 300;
#else
    const bool is_long = std::getenv("PENSTOCK_LONG") != nullptr;
    const std::size_t edges = is_long ? 1'000'000 : 40'000, steps = is_long ? 10'000 : 1'000;
#endif
    // The store of a cluster, whose readers are a few commits behind, does not free records (ADR 105).
    const bool publish_logs = GetParam() == Replaced::Lists;
    Fixture fixture(1, kReserve, publish_logs);
    std::unique_ptr<StoreLease> lease;
    Replacement replacement(fixture, edges, GetParam());
    std::string saved;
    std::uint64_t most = 0, most_early = 0, most_saved = 0;
    for (std::size_t i = 1; i <= steps && !HasFatalFailure(); ++i) {
        replacement.step();
        if (publish_logs && i % 4 == 0) lease = fixture.store->lease(fixture.store->latest());
        most = std::max(most, memory(*fixture.store));
        if (i <= steps / 2) most_early = most;
        if (i % (steps / 40) != 0 && i != steps) continue;
        const std::string here = fixture.scratch / ("saved-" + std::to_string(i));
        fixture.store->capture(here, saved)->write();
        if (!saved.empty()) std::filesystem::remove_all(saved);
        most_saved = std::max(most_saved, bytes_of(saved = here));
    }
    Fixture fresh;
    for (std::uint64_t l = 0; l < 4; ++l) fresh.label(1'000'000 + l);
    fresh.add(replacement.content());
    fresh.store->save(fresh.scratch / "saved");
    const std::uint64_t size = memory(*fresh.store), saved_size = bytes_of(fresh.scratch / "saved");
    const auto ratio = [](std::uint64_t a, std::uint64_t b) { return static_cast<double>(a) / static_cast<double>(b); };
    std::printf("memory %.2f, mapped %.2f, checkpoint %.2f of a fresh load\n", ratio(most, size),
                ratio(bytes_of(fixture.scratch / "regions"), bytes_of(fresh.scratch / "regions")),
                ratio(most_saved, saved_size));
    EXPECT_LE(most, 2 * size);
    EXPECT_LE(most, most_early + most_early / 8);
    EXPECT_LE(most_saved, (publish_logs ? 3 : 2) * saved_size);  // more words change in each commit

    lease.reset();
    fixture.store.reset();
    const auto store = Store::open(saved, "", kReserve);
    const auto view = store->view(), same = fresh.store->view();
    EXPECT_EQ(store->edge_count(), edges);
    for (Label l = 1; l <= 4; ++l) {
        EXPECT_EQ(vertices(*view, l, Dir::Out), vertices(*same, l, Dir::Out));
        EXPECT_EQ(vertices(*view, l, Dir::In), vertices(*same, l, Dir::In));
        for (const TermId v : vertices(*same, l, Dir::Out))
            ASSERT_EQ(neighbours(*view, v, l, Dir::Out), neighbours(*same, v, l, Dir::Out));
    }
}

INSTANTIATE_TEST_SUITE_P(Of, StoreReplace, testing::Values(Replaced::Values, Replaced::Entities, Replaced::Lists));

}  // namespace
}  // namespace penstock::test
