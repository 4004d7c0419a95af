// Open batches, closing, slices, budget, save and restore.
#include <algorithm>
#include <limits>
#include <numeric>

#include "errors.hpp"
#include "stream/window.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

constexpr std::int64_t kFirst = std::numeric_limits<std::int64_t>::min() + 1,
                       kLast = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> batches_of(const Stream& stream, std::int64_t first = kFirst, std::int64_t last = kLast) {
    std::vector<std::int64_t> batches;
    stream.slices(first, last, [&](const Stream::SliceView& slice) { batches.push_back(slice.batch); });
    return batches;
}

std::vector<Tuple> tuples_of(const Fixture& fixture, const Stream& stream) {
    std::vector<Tuple> tuples;
    stream.slices(kFirst, kLast, [&](const Stream::SliceView& slice) {
        for (std::size_t i = 0; i < slice.ts.size(); ++i) {
            const TermId predicate = const_cast<Fixture&>(fixture).store.labels().predicate(slice.label[i]);
            tuples.push_back({slice.ts[i], payload_of(slice.s[i]), payload_of(predicate), payload_of(slice.o[i])});
        }
    });
    return tuples;
}

StreamOptions mixed(std::uint64_t timing_predicate) {
    StreamOptions options = Fixture::timing(100);
    options.all_timing = false;
    options.timing = {iri(timing_predicate)};
    return options;
}

TEST(Slices, hold_a_batch_in_order_of_time_and_arrival) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    append(stream, {{150, 1, 7, 1}, {50, 2, 7, 1}, {150, 3, 8, 1}, {100, 4, 7, 1}, {101, 5, 7, 1}});
    EXPECT_EQ(stream.first_open(), 0);
    EXPECT_EQ(stream.close(1), 2u);
    EXPECT_EQ(stream.first_open(), std::nullopt);
    EXPECT_EQ(tuples_of(fixture, stream),
              (std::vector<Tuple>{{50, 2, 7, 1}, {100, 4, 7, 1}, {101, 5, 7, 1}, {150, 1, 7, 1}, {150, 3, 8, 1}}));
}

TEST(Slices, are_found_by_batch) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    append(stream, {{-250, 1, 7, 1}, {50, 1, 7, 1}, {950, 1, 7, 1}});
    stream.close(20);
    EXPECT_EQ(batches_of(stream), (std::vector<std::int64_t>{-3, 0, 9}));
    EXPECT_EQ(batches_of(stream, -3, 8), (std::vector<std::int64_t>{-3, 0}));
    EXPECT_EQ(batches_of(stream, -2, 9), (std::vector<std::int64_t>{0, 9}));
    EXPECT_TRUE(batches_of(stream, 1, 8).empty());
}

TEST(Close, absorbs_timeless_tuples_and_no_timing_ones) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, mixed(9));
    append(stream, {{10, 1, 7, 2}, {20, 1, 9, 3}, {30, 1, 7, 2}, {150, 1, 7, 4}});
    EXPECT_EQ(fixture.store.edge_count(), 0u);
    EXPECT_EQ(stream.close(0), 1u);
    EXPECT_EQ(fixture.store.edge_count(), 1u);
    EXPECT_EQ(stream.close(1), 1u);
    EXPECT_EQ(stream.close(2), 0u);
    EXPECT_EQ(fixture.store.edge_count(), 2u);
    EXPECT_EQ(tuples_of(fixture, stream).size(), 4u);
}

TEST(Close, a_view_bound_to_a_batch_sees_what_it_absorbed_and_nothing_later) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, mixed(9));
    append(stream, {{50, 1, 7, 2}, {150, 1, 7, 3}});
    stream.close(1);
    const StreamBound bound{1, 0};
    const auto degree = [&](const Source& view) { return view.degree(iri(1), fixture.label(7), Dir::Out); };
    EXPECT_EQ(degree(*fixture.store.view({&bound, 1})), 1u);
    EXPECT_EQ(degree(*fixture.store.view()), 2u);
}

TEST(Close, keeps_the_terms_it_absorbs_and_lets_others_be_forgotten) {
    Fixture fixture;
    const auto term = [&](std::string_view text) { return fixture.dictionary.intern({Kind::Iri, text, {}, {}}); };
    const auto known = [&](std::string_view text) {
        return fixture.dictionary.find({Kind::Iri, text, {}, {}}) != kUnbound;
    };
    const TermId timing = term("urn:at"), timeless = term("urn:knows");
    StreamOptions options = Fixture::timing(100);
    options.all_timing = false;
    options.timing = {timing};
    Stream stream(fixture.store, fixture.dictionary, options);
    const std::vector<std::int64_t> ts{50, 50};
    const std::vector<TermId> s{term("urn:s"), term("urn:car")}, p{timeless, timing},
        o{term("urn:o"), term("urn:place")};
    stream.append(ts, s, p, o);
    stream.close(0);
    const auto sweep = [&](Tick now) {  // looking a term up counts as use
        fixture.dictionary.set_tick(now);
        fixture.dictionary.sweep(std::min(now, stream.oldest_tick()));
    };
    sweep(5);
    EXPECT_TRUE(known("urn:car") && known("urn:place"));  // its slice is live
    stream.release(0);
    sweep(10);
    EXPECT_FALSE(known("urn:car") || known("urn:place"));
    EXPECT_TRUE(known("urn:s") && known("urn:knows") && known("urn:o"));
    EXPECT_TRUE(known("urn:at"));  // its label is for ever
}

TEST(Close, absorbs_into_the_declared_graph) {
    Fixture fixture;
    StreamOptions options = mixed(9);
    options.absorb_graph = iri(100);
    Stream stream(fixture.store, fixture.dictionary, options);
    append(stream, {{10, 1, 7, 2}, {20, 1, 9, 3}});
    stream.close(0);
    EXPECT_NE(fixture.store.labels().find(iri(100), iri(7)), 0u);
    EXPECT_EQ(fixture.store.labels().find(iri(100), iri(9)), 0u);
    EXPECT_NE(fixture.store.labels().find(0, iri(9)), 0u);
}

TEST(Close, costs_nothing_for_a_gap_of_a_thousand_million_batches) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(1));
    append(stream, {{1, 1, 7, 1}});
    append(stream, {{2'000'000'000, 1, 7, 1}});
    stream.close(1'999'999'999);
    EXPECT_EQ(stream.closed(), 1'999'999'999);
    EXPECT_EQ(batches_of(stream).size(), 2u);
}

TEST(Close, is_idempotent_and_never_goes_back) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    EXPECT_EQ(stream.closed(), kNever);
    stream.close(5);
    stream.close(3);
    EXPECT_EQ(stream.closed(), 5);
    EXPECT_THROW(append(stream, {{600, 1, 7, 1}}), DataError);
    append(stream, {{601, 1, 7, 1}});
}

TEST(Append, takes_nothing_where_one_row_is_wrong) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    stream.close(0);
    EXPECT_THROW(append(stream, {{150, 1, 7, 1}, {100, 1, 7, 1}}), DataError);     // closed
    EXPECT_THROW(append(stream, {{150, 1, 7, 1}, {kNever, 1, 7, 1}}), DataError);  // no time at all
    const std::vector<std::int64_t> ts{150};
    const std::vector<TermId> good{iri(1)}, unbound{kUnbound}, local{make_id(Tag::Local, 1)}, two{iri(1), iri(2)};
    EXPECT_THROW(stream.append(ts, unbound, good, good), DataError);
    EXPECT_THROW(stream.append(ts, good, good, local), DataError);
    EXPECT_THROW(stream.append(ts, good, two, good), DataError);
    EXPECT_EQ(stream.live_tuples(), 0u);
    EXPECT_EQ(stream.first_open(), std::nullopt);
}

TEST(Take, appends_rows_that_are_all_accepted_and_close_nothing) {
    Fixture fixture;
    const auto term = [&](std::string_view text) { return fixture.dictionary.intern({Kind::Iri, text, {}, {}}); };
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    stream.close(-1);
    const std::vector<TermId> good(2, term("urn:a")), unknown(2, iri(1'000'000));
    const auto take = [&](std::vector<std::int64_t> ts, std::span<const TermId> objects) {
        const auto some = std::span(good).first(ts.size());
        return stream.take(ts, some, some, objects.first(ts.size()), {9, 5, 1000, 100}, 5000, 99);
    };
    EXPECT_EQ(take({50, 45}, good), 44);              // 50 - 1 - lateness; 45 is still accepted
    EXPECT_EQ(take({50, 44}, good), std::nullopt);    // late
    EXPECT_EQ(take({50, 1101}, good), std::nullopt);  // too far ahead
    EXPECT_EQ(take({50, 106}, good), std::nullopt);   // would close the batch
    EXPECT_EQ(take({50, 105}, good), 99);             // two batches at once
    EXPECT_EQ(take({}, good), std::nullopt);          // nothing is accepted
    EXPECT_THROW(take({50, 60}, unknown), DataError);
    const std::vector<std::int64_t> ts{60};
    const auto one = [](const std::vector<TermId>& ids) { return std::span(ids).first(1); };
    EXPECT_THROW(stream.take(ts, one(good), one(unknown), one(good), {9, 5, 1000, 100}, 5000, 99), DataError);
    EXPECT_THROW(take({50, 5000}, good), DataError);
    EXPECT_EQ(stream.live_tuples(), 4u);
    EXPECT_EQ(stream.first_open(), 0);
    EXPECT_EQ(stream.close(1), 2u);
}

TEST(Append, takes_times_at_both_ends_of_the_range) {
    Fixture fixture;
    for (const std::int64_t batch_ms : {std::int64_t{1}, std::int64_t{100}, kLast}) {
        Stream stream(fixture.store, fixture.dictionary, Fixture::timing(batch_ms));
        append(stream, {{kNever + 2, 1, 7, 1}, {kLast, 2, 7, 1}});
        stream.close(kLast);
        TimeWindow window(stream);
        window.advance(kNever, kLast);
        EXPECT_EQ(window.size(), 2u);
        window.advance(kLast - 1, kLast);
        EXPECT_EQ(window.size(), 1u);
    }
}

TEST(Budget, refuses_before_anything_changes_and_takes_again_after_release) {
    Fixture fixture;
    StreamOptions options = Fixture::timing(100);
    options.memory_bytes = 100'000;
    Stream stream(fixture.store, fixture.dictionary, options);
    std::vector<Tuple> batch(500, {50, 1, 7, 1});
    append(stream, batch);
    append(stream, batch);
    EXPECT_THROW(append(stream, std::vector<Tuple>(1000, {150, 1, 7, 1})), LimitError);
    EXPECT_EQ(stream.live_tuples(), 1000u);
    EXPECT_EQ(stream.first_open(), 0);
    EXPECT_EQ(stream.close(0), 1u);
    EXPECT_EQ(stream.first_open(), std::nullopt);
    append(stream, std::vector<Tuple>(1000, {150, 1, 7, 1}));  // a slice takes less than open tuples did
    const std::vector<Tuple> more(200, {150, 1, 7, 1});
    EXPECT_THROW(append(stream, more), LimitError);
    stream.release(0);
    append(stream, more);
    EXPECT_LE(stream.live_bytes(), options.memory_bytes);
}

TEST(Budget, is_never_exceeded_by_closing) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    std::size_t before = 0;
    for (std::uint64_t batch = 0; batch < 50; ++batch) {  // ever more, ever other predicates
        for (std::uint64_t i = 0; i <= batch; ++i)
            append(stream, {{static_cast<std::int64_t>(batch * 100 + 1), 1, 1000 * batch + i + 1, 1}});
        before = stream.live_bytes();
        stream.close(static_cast<std::int64_t>(batch));
        EXPECT_LE(stream.live_bytes(), before);
    }
}

TEST(Release, gives_slices_back_and_their_memory) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    for (int batch = 0; batch < 100; ++batch) append(stream, std::vector<Tuple>(10'000, {batch * 100 + 1, 1, 7, 1}));
    stream.close(99);
    const std::size_t burst = stream.held_bytes();
    EXPECT_GE(burst, 100u * 10'000 * 28);
    stream.release(49);
    EXPECT_EQ(batches_of(stream).front(), 50);
    EXPECT_EQ(stream.live_tuples(), 500'000u);
    stream.release(1000);
    EXPECT_EQ(stream.live_tuples(), 0u);
    EXPECT_EQ(stream.live_bytes(), 0u);
    EXPECT_LT(stream.held_bytes(), burst / 10);
}

TEST(Ticks, the_oldest_is_that_of_the_oldest_open_or_live_tuple) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    EXPECT_EQ(stream.oldest_tick(), std::numeric_limits<Tick>::max());
    fixture.dictionary.set_tick(5);
    append(stream, {{350, 1, 7, 1}});  // a later batch, opened first
    fixture.dictionary.set_tick(6);
    append(stream, {{150, 1, 7, 1}});
    EXPECT_EQ(stream.oldest_tick(), 5u);
    fixture.dictionary.set_tick(7);
    stream.close(2);
    EXPECT_EQ(stream.oldest_tick(), 5u);
    stream.close(3);
    EXPECT_EQ(stream.oldest_tick(), 5u);
    stream.release(2);
    EXPECT_EQ(stream.oldest_tick(), 5u);
    stream.release(3);
    EXPECT_EQ(stream.oldest_tick(), std::numeric_limits<Tick>::max());
}

TEST(Stream, a_batch_of_two_million_tuples_in_any_order_works) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(10'000'000));
    constexpr std::size_t n = 2'000'000;
    std::vector<std::int64_t> ts(n);
    std::vector<TermId> s(n), p(n, iri(7)), o(n);
    for (std::size_t i = 0; i < n; ++i) {
        ts[i] = 1 + static_cast<std::int64_t>(i * 7'919 % n);
        s[i] = iri(1 + i);
        o[i] = iri(1 + i % 1000);
    }
    stream.append(ts, s, p, o);
    stream.close(0);
    std::size_t found = 0;
    stream.slices(0, 0, [&](const Stream::SliceView& slice) {
        found = slice.ts.size();
        EXPECT_TRUE(std::is_sorted(slice.ts.begin(), slice.ts.end()));
        EXPECT_EQ(slice.s[1], s[std::find(ts.begin(), ts.end(), 2) - ts.begin()]);
    });
    EXPECT_EQ(found, n);
}

TEST(Stream, refuses_options_that_make_no_sense) {
    Fixture fixture;
    StreamOptions options = Fixture::timing(0);
    EXPECT_THROW(Stream(fixture.store, fixture.dictionary, options), DataError);
    options = Fixture::timing(100);
    options.number = 0;
    EXPECT_THROW(Stream(fixture.store, fixture.dictionary, options), DataError);
}

TEST(Save, brings_open_batches_and_live_slices_back) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, mixed(9));
    append(
        stream,
        {{-50, 1, 7, 1}, {50, 1, 9, 2}, {40, 3, 7, 2}, {150, 1, 7, 1}, {250, 2, 9, 1}, {240, 2, 7, 1}, {450, 1, 8, 1}});
    stream.close(1);
    stream.release(-1);
    const std::string saved = stream.save();
    Stream back(fixture.store, fixture.dictionary, mixed(9));
    back.restore(saved);
    EXPECT_EQ(back.closed(), 1);
    EXPECT_EQ(back.first_open(), stream.first_open());
    EXPECT_EQ(back.live_tuples(), stream.live_tuples());
    EXPECT_EQ(back.save(), saved);
    stream.close(4);
    back.close(4);
    EXPECT_EQ(tuples_of(fixture, back), tuples_of(fixture, stream));
}

TEST(Save, labels_may_have_other_numbers_after_a_restart) {
    Fixture before, after;
    after.label(1000);
    Stream stream(before.store, before.dictionary, Fixture::timing(100));
    append(stream, {{50, 1, 7, 1}, {150, 1, 8, 1}});
    stream.close(0);
    Stream back(after.store, after.dictionary, Fixture::timing(100));
    back.restore(stream.save());
    stream.close(1);
    back.close(1);
    EXPECT_EQ(tuples_of(after, back), tuples_of(before, stream));
}

TEST(Save, damage_is_found_and_changes_nothing) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    append(stream, {{50, 1, 7, 1}, {150, 1, 8, 1}});
    stream.close(0);
    const std::string saved = stream.save();
    Stream back(fixture.store, fixture.dictionary, Fixture::timing(100));
    for (std::size_t at = 0; at < saved.size(); ++at) {
        std::string damaged = saved;
        damaged[at] ^= 0x10;
        EXPECT_THROW(back.restore(damaged), StorageError) << at;
        EXPECT_THROW(back.restore(saved.substr(0, at)), StorageError) << at;
    }
    EXPECT_THROW(back.restore(saved + saved), StorageError);
    EXPECT_EQ(back.live_tuples(), 0u);
    EXPECT_EQ(back.closed(), kNever);
    back.restore(saved);
    EXPECT_EQ(back.live_tuples(), 2u);
    EXPECT_THROW(back.restore(saved), Error);
}

TEST(Save, another_streams_is_refused) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    Stream other(fixture.store, fixture.dictionary, Fixture::timing(200));
    EXPECT_THROW(other.restore(stream.save()), StorageError);
}

}  // namespace
}  // namespace penstock
