// Batches of event times and the outcomes of rows (docs/semantics.md §2), at the ends of the range too.
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

#include "errors.hpp"
#include "stream/event_time.hpp"
#include "stream/stream.hpp"

namespace penstock {
namespace {

constexpr std::int64_t kMin = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();

TEST(EventTime, a_batch_is_open_below_and_closed_above) {
    EXPECT_EQ(batch_of(0, 100), -1);
    EXPECT_EQ(batch_of(1, 100), 0);
    EXPECT_EQ(batch_of(100, 100), 0);
    EXPECT_EQ(batch_of(101, 100), 1);
}

TEST(EventTime, negative_times_round_down_too) {
    EXPECT_EQ(batch_of(-1, 100), -1);
    EXPECT_EQ(batch_of(-99, 100), -1);
    EXPECT_EQ(batch_of(-100, 100), -2);
    EXPECT_EQ(batch_of(-101, 100), -2);
    EXPECT_EQ(batch_of(-5, 1), -6);
}

TEST(EventTime, the_finder_agrees_with_the_division_at_every_boundary) {
    for (const std::int64_t batch_ms : {1LL, 7LL, 100LL, 1LL << 40, (1LL << 62) + 1, static_cast<long long>(kMax)}) {
        std::mt19937_64 random(7);
        BatchFinder find(batch_ms);
        std::vector<std::int64_t> times{kFirstTime, kFirstTime + 1, -1, 0, 1, kMax - 1, kMax, kFirstTime};
        for (int i = 0; i < 2000; ++i) times.push_back(static_cast<std::int64_t>(random()) | 1);
        for (int i = -300; i < 300; ++i) times.push_back(i);
        for (const std::int64_t ts : times) {
            const __int128 batch = batch_of(ts, batch_ms);
            ASSERT_EQ(find(ts), static_cast<std::int64_t>(batch)) << ts << " by " << batch_ms;
            ASSERT_TRUE(batch * batch_ms < ts && ts <= (batch + 1) * batch_ms) << ts << " by " << batch_ms;
        }
    }
}

struct Decided {
    std::vector<Outcome> outcomes;
    std::int64_t watermark;
};

Decided decide(std::vector<std::int64_t> ts, std::int64_t watermark, std::int64_t lateness, std::int64_t wall,
               std::int64_t ahead) {
    Decided decided{std::vector<Outcome>(ts.size()), 0};
    decided.watermark = Stream::decide(ts, watermark, lateness, wall, ahead, decided.outcomes);
    return decided;
}

constexpr Outcome A = Outcome::Accepted, L = Outcome::Late, F = Outcome::TooFarAhead;

TEST(Decide, an_accepted_row_moves_the_watermark_to_just_below_it) {
    const auto decided = decide({100, 100, 99, 101, 100}, kNever, 0, 0, 1000);
    EXPECT_EQ(decided.outcomes, (std::vector{A, A, L, A, L}));
    EXPECT_EQ(decided.watermark, 100);
}

TEST(Decide, lateness_is_how_far_back_rows_are_still_taken) {
    const auto decided = decide({100, 90, 89, 95}, kNever, 10, 0, 1000);
    EXPECT_EQ(decided.outcomes, (std::vector{A, A, L, A}));
    EXPECT_EQ(decided.watermark, 89);
}

TEST(Decide, the_watermark_never_goes_back) {
    EXPECT_EQ(decide({60}, 50, 100, 0, 1000).watermark, 50);
    EXPECT_EQ(decide({}, 50, 100, 0, 1000).watermark, 50);
}

TEST(Decide, a_row_at_the_watermark_is_late) {
    EXPECT_EQ(decide({50, 51}, 50, 0, 0, 10).outcomes, (std::vector{L, A}));
}

TEST(Decide, a_row_too_far_ahead_of_watermark_and_wall_moves_nothing) {
    const auto decided = decide({1101, 1100, 1101}, 50, 0, 100, 1000);
    EXPECT_EQ(decided.outcomes, (std::vector{F, A, A}));  // the second one's watermark lets the third in
    EXPECT_EQ(decide({1101}, 50, 0, 100, 1000).watermark, 50);
    EXPECT_EQ(decide({1101}, 101, 0, 100, 1000).outcomes, (std::vector{A}));
}

TEST(Decide, other_partitions_hold_the_watermark_back) {
    std::vector<Outcome> outcomes(4);
    const std::vector<std::int64_t> ts{1000, 700, 600, 599};
    EXPECT_EQ(Stream::decide_partition(ts, 500, kNever, 600, 0, 0, 10'000, outcomes), 999);
    EXPECT_EQ(outcomes, (std::vector{A, A, L, L}));
    EXPECT_EQ(Stream::decide_partition(ts, 500, kNever, kNever, 0, 0, 10'000, outcomes), 999);
    EXPECT_EQ(outcomes, (std::vector{A, A, A, A}));
    EXPECT_EQ(Stream::decide_partition(ts, 500, 2000, kMax, 0, 0, 10'000, outcomes), 2000);
    EXPECT_EQ(outcomes, (std::vector{L, L, L, L}));
}

TEST(Decide, nothing_overflows_at_the_ends_of_time) {
    EXPECT_EQ(decide({kMin, kMin + 1}, kMin, 5, 0, 5).outcomes, (std::vector{L, A}));
    EXPECT_EQ(decide({kMin + 1}, kMin, kMax, kMin, kMax).watermark, kMin);
    EXPECT_EQ(decide({kMax}, kMin, 0, kMax - 1, kMax).watermark, kMax - 1);
    EXPECT_EQ(decide({kMax}, kMax - 1, 0, 0, 0).outcomes, (std::vector{F}));
    EXPECT_EQ(decide({kMax}, kMax, 0, kMax, kMax).outcomes, (std::vector{L}));
    EXPECT_EQ(decide({kMax}, kMin, 0, kMin, 10).outcomes, (std::vector{F}));
}

TEST(Decide, agrees_with_the_rules_in_wider_arithmetic) {
    std::mt19937_64 random(3);
    const std::int64_t ends[] = {kMin, kMin + 1, kMin + 50, -50, 0, 50, kMax - 50, kMax - 1, kMax};
    const auto any = [&] { return ends[random() % std::size(ends)]; };
    const auto length = [&] { return ends[4 + random() % 5]; };
    for (int i = 0; i < 20'000; ++i) {
        const std::vector<std::int64_t> ts{any(), any(), any()};
        const std::int64_t watermark = any(), lateness = length(), wall = any(), ahead = length();
        const auto decided = decide(ts, watermark, lateness, wall, ahead);
        __int128 w = watermark;
        for (std::size_t row = 0; row < ts.size(); ++row) {
            const __int128 limit = std::max<__int128>(w, wall) + ahead;
            const Outcome expected = ts[row] <= w ? L : ts[row] > limit ? F : A;
            ASSERT_EQ(decided.outcomes[row], expected);
            if (expected == A) w = std::max<__int128>({w, static_cast<__int128>(ts[row]) - 1 - lateness, kMin});
        }
        ASSERT_EQ(decided.watermark, static_cast<std::int64_t>(w));
    }
}

TEST(Decide, refuses_negative_lateness_and_spans_that_differ) {
    EXPECT_THROW(decide({1}, 0, -1, 0, 0), DataError);
    EXPECT_THROW(decide({1}, 0, 0, 0, -1), DataError);
    std::vector<std::int64_t> ts{1, 2};
    std::vector<Outcome> outcomes(1);
    EXPECT_THROW(Stream::decide(ts, 0, 0, 0, 0, outcomes), Error);
}

}  // namespace
}  // namespace penstock
