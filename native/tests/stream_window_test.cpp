// Windows: the known traps of docs/semantics.md §7 that are theirs, misuse, jumps, hubs, and memory that is given back.
#include <algorithm>

#include "errors.hpp"
#include "stream/window.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

std::vector<TermId> expand(const Window& window, TermId key, Label label, Dir dir) {
    Matches matches;
    window.expand({&key, 1}, label, dir, matches);
    std::sort(matches.values.begin(), matches.values.end());
    return matches.values;
}

struct TimeWindows : ::testing::Test {
    Fixture fixture;
    Stream stream{fixture.store, fixture.dictionary, Fixture::timing(100)};
    TimeWindow window{stream};
    Label label = fixture.label(7);

    void feed(const std::vector<Tuple>& tuples, std::int64_t batch) {
        append(stream, tuples);
        stream.close(batch);
    }
};

TEST_F(TimeWindows, are_open_below_and_closed_above) {
    feed({{100, 1, 7, 1}, {101, 1, 7, 2}, {350, 1, 7, 3}, {351, 1, 7, 4}}, 10);
    window.advance(100, 350);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2), iri(3)}));
    window.advance(101, 351);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(3), iri(4)}));
}

TEST_F(TimeWindows, trap_11_a_duplicate_is_one_edge) {
    feed({{10, 1, 7, 2}, {20, 1, 7, 2}, {120, 1, 7, 2}}, 1);
    window.advance(0, 200);
    EXPECT_EQ(window.size(), 1u);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2)}));
    EXPECT_EQ(window.stats(label).edges, 1u);
    EXPECT_EQ(window.latest(iri(1), label, iri(2)), 120);
}

TEST_F(TimeWindows, trap_12_an_expired_duplicate_leaves_the_younger_one) {
    feed({{10, 1, 7, 2}, {20, 1, 7, 3}, {30, 1, 7, 2}}, 1);
    window.advance(0, 200);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out).size(), 2u);
    window.advance(10, 200);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2), iri(3)}));
    window.advance(20, 200);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2)}));
    EXPECT_EQ(expand(window, iri(2), label, Dir::In), (std::vector{iri(1)}));
    window.advance(30, 200);
    EXPECT_EQ(window.size(), 0u);
    EXPECT_EQ(window.latest(iri(1), label, iri(2)), kNever);
}

TEST_F(TimeWindows, trap_18_an_edge_before_the_start_hides_none_after_it) {
    feed({{100, 1, 7, 2}, {101, 1, 7, 3}}, 1);
    window.advance(100, 200);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(3)}));
    std::vector<TermId> subjects;
    window.vertices(label, Dir::Out, subjects);
    EXPECT_EQ(subjects, (std::vector{iri(1)}));
}

TEST_F(TimeWindows, say_which_lists_a_move_may_have_changed) {
    feed({{10, 1, 7, 2}, {60, 2, 7, 3}, {110, 3, 7, 4}, {115, 1, 8, 2}, {130, 4, 7, 5}}, 1);
    const std::vector keys{iri(1), iri(2), iri(3), iri(4), iri(5)};
    std::vector<std::uint32_t> rows;
    const auto changed_since = [&](std::uint64_t version) {
        rows.clear();
        return window.changed_since(version, keys, label, Dir::Out, rows);
    };
    window.advance(0, 120);
    const std::uint64_t first = window.version();
    EXPECT_TRUE(changed_since(first));
    EXPECT_TRUE(rows.empty());
    window.advance(10, 120);
    EXPECT_FALSE(changed_since(first)) << "nobody had asked before that move";
    const std::uint64_t second = window.version();
    window.advance(60, 130);
    EXPECT_TRUE(changed_since(second));
    EXPECT_EQ(rows, (std::vector<std::uint32_t>{1, 3})) << "what expired, what came";
    EXPECT_FALSE(changed_since(first)) << "two moves ago";
    const std::uint64_t third = window.version();
    window.advance(60, 140);
    EXPECT_TRUE(changed_since(third));
    EXPECT_TRUE(rows.empty());
    TimeWindow other{stream};
    other.advance(0, 120);
    EXPECT_FALSE(other.changed_since(third, keys, label, Dir::Out, rows)) << "another window's";
}

TEST_F(TimeWindows, answer_for_what_they_do_not_hold) {
    EXPECT_TRUE(expand(window, iri(1), label, Dir::Out).empty());
    EXPECT_EQ(window.stats(12345).edges, 0u);
    EXPECT_EQ(window.degree(iri(1), 12345, Dir::In), 0u);
    std::vector<Label> labels;
    std::vector<std::uint32_t> rows;
    const TermId key = iri(1);
    window.labels_of({&key, 1}, Dir::Out, rows, labels);
    window.labels(labels);
    EXPECT_TRUE(labels.empty());
}

TEST_F(TimeWindows, only_move_forward_over_closed_batches) {
    feed({{10, 1, 7, 2}}, 1);
    window.advance(0, 200);
    EXPECT_THROW(window.advance(-1, 200), Error);
    EXPECT_THROW(window.advance(0, 199), Error);
    EXPECT_THROW(window.advance(300, 200), Error);
    EXPECT_THROW(window.advance(0, 201), Error);
    EXPECT_EQ(window.size(), 1u);
}

TEST_F(TimeWindows, keep_their_tuples_when_the_slices_are_released) {
    feed({{10, 1, 7, 2}, {150, 1, 7, 3}}, 1);
    window.advance(0, 200);
    stream.release(1);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2), iri(3)}));
    window.advance(100, 200);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(3)}));
}

TEST_F(TimeWindows, jump_over_everything_they_hold) {
    feed({{10, 1, 7, 2}, {5000, 1, 7, 3}, {9000, 1, 7, 4}, {9100, 2, 7, 4}}, 100);
    window.advance(0, 100);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2)}));
    window.advance(8000, 9000);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(4)}));
    window.advance(9000, 9100);
    EXPECT_EQ(expand(window, iri(4), label, Dir::In), (std::vector{iri(2)}));
}

TEST_F(TimeWindows, two_over_one_stream_are_independent) {
    TimeWindow other(stream);
    feed({{10, 1, 7, 2}, {150, 1, 7, 3}}, 1);
    window.advance(0, 200);
    other.advance(100, 200);
    EXPECT_EQ(window.size(), 2u);
    EXPECT_EQ(other.size(), 1u);
}

TEST_F(TimeWindows, give_memory_back_after_a_burst) {
    std::vector<Tuple> burst;
    for (std::uint64_t i = 0; i < 100'000; ++i) burst.push_back({50, 1 + i % 5000, 7 + i % 3, 1 + i});
    feed(burst, 0);
    window.advance(0, 100);
    for (std::uint64_t p = 7; p < 10; ++p)
        expand(window, iri(1), fixture.label(p), Dir::Out), expand(window, iri(1), fixture.label(p), Dir::In);
    const std::size_t full = window.bytes();
    for (std::int64_t batch = 1; batch < 5; ++batch) {
        feed({{batch * 100 + 1, 1, 7, 2}}, batch);
        window.advance(std::max<std::int64_t>(0, batch * 100 - 200), (batch + 1) * 100);
    }
    EXPECT_LT(window.bytes(), full / 500);
}

TEST_F(TimeWindows, forget_predicates_that_no_longer_come) {
    std::vector<TermId> keys{iri(1)};
    std::vector<std::uint32_t> rows;
    std::vector<Label> labels;
    std::size_t bytes = 0;
    for (std::int64_t batch = 0; batch < 400; ++batch) {
        std::vector<Tuple> tuples;
        for (std::uint64_t i = 0; i < 20; ++i)
            tuples.push_back({batch * 100 + 1, 1, 10 + static_cast<std::uint64_t>(batch) * 20 + i, 1});
        feed(tuples, batch);
        window.advance((batch - 1) * 100, (batch + 1) * 100);
        window.labels_of(keys, Dir::Out, rows, labels);
        if (batch == 100) bytes = window.bytes();
    }
    EXPECT_EQ(window.size(), 40u);
    EXPECT_LE(window.bytes(), 2 * bytes);
}

TEST_F(TimeWindows, a_hub_of_many_edges_comes_and_goes_in_linear_time) {
    constexpr std::uint64_t n = 100'000;
    expand(window, iri(1), label, Dir::Out);
    expand(window, iri(1), label, Dir::In);
    std::int64_t batch = 0;
    for (const std::uint64_t stride : {1, 3, 7, 9}) {  // from the second time on all are duplicates, in other orders
        std::vector<Tuple> tuples;
        for (std::uint64_t i = 0; i < n; ++i) {
            tuples.push_back({batch * 100 + 1 + static_cast<std::int64_t>(i * 99 / n), 1, 7, 2 + i * stride % n});
        }
        feed(tuples, batch);
        window.advance(batch * 100 - 100, (batch + 1) * 100);
        window.advance(batch * 100 - 70, (batch + 1) * 100);
        EXPECT_EQ(window.size(), n);
        EXPECT_EQ(window.degree(iri(1), label, Dir::Out), n);
        ++batch;
    }
}

// ---- count windows

struct CountWindows : ::testing::Test {
    Fixture fixture;
    Stream stream{fixture.store, fixture.dictionary, Fixture::timing(100)};
    Label label = fixture.label(7);
    using Reports = std::vector<CountWindow::Report>;

    void feed(const std::vector<Tuple>& tuples, std::int64_t batch) {
        append(stream, tuples);
        stream.close(batch);
    }
};

TEST_F(CountWindows, report_after_every_step_at_that_tuples_time) {
    CountWindow window(stream, 3, 2, 0);
    feed({{10, 1, 7, 1}, {20, 1, 7, 2}, {30, 1, 7, 3}, {140, 1, 7, 4}, {150, 1, 7, 5}}, 1);
    EXPECT_EQ(window.take(0), (Reports{{20, 2}}));
    EXPECT_EQ(window.take(1), (Reports{{140, 4}}));
    window.advance(2);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(1), iri(2)}));
    EXPECT_EQ(window.bounds(), (std::pair<std::int64_t, std::int64_t>{9, 20}));
    window.advance(4);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(2), iri(3), iri(4)}));
    EXPECT_EQ(window.bounds(), (std::pair<std::int64_t, std::int64_t>{19, 140}));
}

TEST_F(CountWindows, of_several_reports_at_one_time_the_last_stands) {
    CountWindow window(stream, 10, 2, 0);
    feed({{10, 1, 7, 1}, {10, 1, 7, 2}, {10, 1, 7, 3}, {10, 1, 7, 4}, {11, 1, 7, 5}, {11, 1, 7, 6}}, 0);
    EXPECT_EQ(window.take(0), (Reports{{10, 4}, {11, 6}}));
}

TEST_F(CountWindows, duplicates_count_but_are_one_edge) {
    CountWindow window(stream, 3, 1, 0);
    feed({{10, 1, 7, 1}, {20, 1, 7, 1}, {30, 1, 7, 2}, {40, 1, 7, 1}}, 0);
    EXPECT_EQ(window.take(0).size(), 4u);
    window.advance(3);
    EXPECT_EQ(window.size(), 2u);
    window.advance(4);
    EXPECT_EQ(window.size(), 2u);
    EXPECT_EQ(window.bounds(), (std::pair<std::int64_t, std::int64_t>{19, 40}));
}

TEST_F(CountWindows, tuples_up_to_the_registration_point_do_not_count) {
    CountWindow window(stream, 2, 1, 20);
    feed({{10, 1, 7, 1}, {20, 1, 7, 2}, {21, 1, 7, 3}}, 0);
    EXPECT_EQ(window.take(0), (Reports{{21, 1}}));
    window.advance(1);
    EXPECT_EQ(expand(window, iri(1), label, Dir::Out), (std::vector{iri(3)}));
}

TEST_F(CountWindows, hold_nothing_at_first) {
    CountWindow window(stream, 2, 1, 0);
    EXPECT_EQ(window.bounds(), (std::pair<std::int64_t, std::int64_t>{0, 0}));
    EXPECT_EQ(window.size(), 0u);
    window.advance(0);
}

TEST_F(CountWindows, refuse_what_makes_no_sense) {
    EXPECT_THROW(CountWindow(stream, 0, 1, 0), DataError);
    EXPECT_THROW(CountWindow(stream, 1, 0, 0), DataError);
    EXPECT_THROW(CountWindow(stream, ~std::uint64_t{0}, 1, 0), LimitError);
    CountWindow window(stream, 2, ~std::uint64_t{0}, 0);
    EXPECT_THROW(window.take(0), Error);  // still open
    feed({{10, 1, 7, 1}}, 0);
    EXPECT_TRUE(window.take(0).empty());
    EXPECT_THROW(window.advance(2), Error);
}

TEST_F(CountWindows, tell_which_slices_they_need) {
    CountWindow window(stream, 2, 2, 0);
    EXPECT_EQ(window.oldest_batch(), -1);
    for (std::int64_t batch = 0; batch < 6; ++batch) feed({{batch * 100 + 1, 1, 7, 1}}, batch);
    window.take(2);
    EXPECT_EQ(window.oldest_batch(), 0);  // positions 1 and 2 have been reported, but not yet been shown
    window.advance(2);
    EXPECT_EQ(window.oldest_batch(), 0);
    window.take(5);
    window.advance(6);
    EXPECT_EQ(window.oldest_batch(), 4);
    stream.release(3);
    const std::string saved = window.save();
    CountWindow back(stream, 2, 2, 0);
    back.restore(saved);
    EXPECT_EQ(back.bounds(), window.bounds());
    EXPECT_EQ(back.oldest_batch(), 4);
}

TEST_F(CountWindows, with_a_step_beyond_their_size_need_only_the_last_tuples) {
    CountWindow window(stream, 1, 1000, 0);
    for (std::int64_t batch = 0; batch < 1000; ++batch) {
        feed({{batch * 100 + 1, 1, 7, 1}}, batch);
        window.take(batch);
        stream.release(window.oldest_batch() - 1);
    }
    EXPECT_EQ(window.oldest_batch(), 999);
    EXPECT_EQ(stream.live_tuples(), 1u);
}

TEST_F(CountWindows, are_restored_before_their_registration_point_too) {
    stream.close(0);
    CountWindow window(stream, 2, 1, 1000), back(stream, 2, 1, 1000);
    back.restore(window.save());
    feed({{1000, 1, 7, 1}, {1001, 1, 7, 2}}, 10);
    EXPECT_EQ(back.take(10), (Reports{{1001, 1}}));
}

TEST_F(CountWindows, refuse_the_state_of_another_or_damaged) {
    CountWindow window(stream, 2, 2, 0), other(stream, 3, 2, 0), fresh(stream, 2, 2, 0);
    feed({{10, 1, 7, 1}, {20, 1, 7, 1}}, 0);
    window.take(0);
    window.advance(2);
    std::string saved = window.save();
    EXPECT_THROW(other.restore(saved), StorageError);
    stream.release(0);
    EXPECT_THROW(fresh.restore(saved), StorageError);  // its tuples are gone
    saved[20] ^= 1;
    EXPECT_THROW(CountWindow(stream, 2, 2, 0).restore(saved), StorageError);
}

}  // namespace
}  // namespace penstock
