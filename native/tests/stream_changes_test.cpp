// Streams that remove: what batches with removals leave in the stored graph, slices of removals, save and restore.
#include <algorithm>
#include <limits>

#include "errors.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min() + 1,
                       kLast = std::numeric_limits<std::int64_t>::max();

struct Change {
    Tuple tuple;
    bool removed;
};

Change add(Tuple tuple) { return {tuple, false}; }
Change drop(Tuple tuple) { return {tuple, true}; }

void append(Stream& stream, const std::vector<Change>& changes) {
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, p, o;
    std::vector<std::uint8_t> removed;
    for (const auto& [t, is_removed] : changes) {
        ts.push_back(t.ts);
        s.push_back(iri(t.s));
        p.push_back(iri(t.p));
        o.push_back(iri(t.o));
        removed.push_back(is_removed);
    }
    stream.append_changes(ts, s, p, o, removed);
}

StreamOptions storing(std::size_t memory_bytes = 0) {
    StreamOptions options;
    options.number = 1;
    options.timing = {iri(9)};
    options.memory_bytes = memory_bytes;
    return options;
}

/// Predicate 7 of the stored graph: (subject, object), ascending.
std::vector<std::pair<TermId, TermId>> stored(Fixture& fixture, const std::vector<StreamBound>& bounds = {}) {
    const auto view = fixture.store.view(bounds);
    std::vector<TermId> s, o;
    view->edges(fixture.label(7), s, o);
    std::vector<std::pair<TermId, TermId>> pairs;
    for (std::size_t i = 0; i < s.size(); ++i) pairs.emplace_back(payload_of(s[i]), payload_of(o[i]));
    std::sort(pairs.begin(), pairs.end());
    return pairs;
}

std::vector<std::pair<std::int64_t, std::uint64_t>> subjects(const SliceSource& slices) {
    std::vector<std::pair<std::int64_t, std::uint64_t>> found;
    slices.slices(kFirst, kLast, [&](const Stream::SliceView& slice) {
        for (std::size_t i = 0; i < slice.ts.size(); ++i) found.emplace_back(slice.ts[i], payload_of(slice.s[i]));
    });
    return found;
}

using Pairs = std::vector<std::pair<TermId, TermId>>;
using Subjects = std::vector<std::pair<std::int64_t, std::uint64_t>>;

TEST(Changes, of_a_batch_take_effect_in_the_order_of_time_and_arrival) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing());
    append(stream, {drop({10, 1, 7, 1}), add({10, 1, 7, 1}),  // added last
                    add({20, 2, 7, 1}), drop({20, 2, 7, 1}),  // removed last
                    add({60, 3, 7, 1}), drop({50, 3, 7, 1}),  // the earlier removal arrives later
                    add({70, 4, 7, 1}), drop({80, 4, 7, 1}), drop({80, 5, 7, 1})});
    append(stream, {drop({60, 3, 7, 1}), add({60, 3, 7, 1})});  // a later call continues the order
    testing::append(stream, {{80, 5, 7, 1}});
    append(stream, {drop({80, 5, 7, 1})});
    EXPECT_EQ(stream.close(0), 1u);
    EXPECT_EQ(stored(fixture), (Pairs{{1, 1}, {3, 1}}));
    EXPECT_EQ(subjects(stream).size(), 6u);
    EXPECT_EQ(subjects(stream.removals()), (Subjects{{10, 1}, {20, 2}, {50, 3}, {60, 3}, {80, 4}, {80, 5}, {80, 5}}));
    EXPECT_EQ(stream.removals().closed(), 0);
}

TEST(Changes, of_later_batches_are_not_in_bounded_views) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing());
    testing::append(stream, {{50, 1, 7, 1}, {50, 2, 7, 1}});
    append(stream, {drop({150, 1, 7, 1}), drop({150, 8, 7, 8})});
    EXPECT_EQ(stream.first_open(), 0);
    EXPECT_EQ(stream.close(5), 2u);
    EXPECT_EQ(stored(fixture), (Pairs{{2, 1}}));
    EXPECT_EQ(stored(fixture, {{1, 0}}), (Pairs{{1, 1}, {2, 1}}));
    EXPECT_EQ(stream.closed(), 5);
    EXPECT_EQ(stream.removals().closed(), 5);
}

TEST(Changes, of_timing_predicates_do_not_remove) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing());
    append(stream, {add({10, 1, 7, 1}), drop({20, 1, 9, 1})});
    EXPECT_EQ(stream.close(0), 1u);
    EXPECT_EQ(stored(fixture), (Pairs{{1, 1}}));
}

TEST(Changes, that_fail_change_nothing) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing(2000));
    std::vector<Change> many;
    for (std::uint64_t i = 1; i <= 40; ++i) many.push_back({{50, i, 7, 1}, i % 2 == 0});
    EXPECT_THROW(append(stream, many), LimitError);
    stream.close(0);
    EXPECT_THROW(append(stream, {add({150, 1, 7, 1}), drop({100, 1, 7, 1})}), DataError);  // closed
    EXPECT_EQ(stream.live_tuples(), 0u);
    EXPECT_EQ(stream.first_open(), std::nullopt);
}

TEST(Changes, are_released_with_the_batches) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing());
    append(stream, {add({50, 1, 7, 1}), drop({50, 2, 7, 1}), drop({150, 3, 7, 1})});
    EXPECT_EQ(stream.live_tuples(), 3u);
    stream.close(1);
    stream.release(0);
    EXPECT_EQ(subjects(stream.removals()), (Subjects{{150, 3}}));
    EXPECT_EQ(stream.live_tuples(), 1u);
    stream.release(1);
    EXPECT_EQ(stream.oldest_tick(), std::numeric_limits<Tick>::max());
    EXPECT_EQ(stream.live_bytes(), 0u);
}

TEST(Changes, survive_save_and_restore) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, storing());
    append(stream, {add({50, 1, 7, 1}), drop({50, 2, 7, 1}), add({60, 2, 7, 1})});
    stream.close(0);
    append(stream, {add({150, 3, 7, 1}), drop({150, 1, 7, 1}), drop({150, 3, 7, 1}), add({150, 1, 7, 1})});
    append(stream, {drop({250, 2, 7, 1})});  // a batch without additions
    const std::string saved = stream.save();
    Stream restored(fixture.store, fixture.dictionary, storing());
    restored.restore(saved);
    EXPECT_EQ(subjects(restored.removals()), (Subjects{{50, 2}}));
    append(restored, {drop({150, 1, 7, 1})});
    EXPECT_EQ(restored.first_open(), 1);
    EXPECT_EQ(restored.close(2), 2u);
    EXPECT_EQ(stored(fixture), Pairs{});
    EXPECT_EQ(subjects(restored.removals()).size(), 5u);
    std::string damaged = saved;
    damaged[saved.size() / 2] ^= 1;
    EXPECT_THROW(Stream(fixture.store, fixture.dictionary, storing()).restore(damaged), StorageError);
}

}  // namespace
}  // namespace penstock
