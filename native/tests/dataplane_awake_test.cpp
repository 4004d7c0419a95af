// Waiting awake: it stops where it does not pay, and begins again where it does.
#include "dataplane/awake.hpp"

#include <gtest/gtest.h>

namespace penstock::dataplane {
namespace {

struct Counted {
    /// One wait; returns the number of calls of look(). `at_once`: something is there already.
    int wait(bool at_once) {
        int looks = 0;
        awake.wait(
            [&] {
                ++looks;
                return at_once;
            },
            [&] { ++slept; });
        return looks;
    }
    Awake awake;
    int slept = 0;
};

TEST(Awake, looks_before_it_sleeps_while_that_pays) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core: it always sleeps";
    Counted counted;
    for (int i = 0; i < 100; ++i) EXPECT_EQ(counted.wait(true), 1);
    EXPECT_EQ(counted.slept, 0);
}

TEST(Awake, is_awake_in_vain_ever_more_rarely) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core: it always sleeps";
    constexpr int kWaits = 10 * (Awake::kMostAsleep + 1);
    Counted counted;
    int awake = 0;
    for (int i = 0; i < kWaits; ++i) awake += counted.wait(false) > 0;
    EXPECT_EQ(counted.slept, kWaits);
    EXPECT_LE(awake, 20);  // eight while the penalty doubles, then one in 256
    EXPECT_GE(awake, 10);
}

TEST(Awake, begins_again_when_it_pays_once) {
    if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core: it always sleeps";
    Counted counted;
    for (int i = 0; i < 5; ++i) counted.wait(false);
    int asleep = 0;
    while (counted.wait(true) == 0) ++asleep;
    EXPECT_LE(asleep, static_cast<int>(Awake::kMostAsleep));
    for (int i = 0; i < 100; ++i) EXPECT_EQ(counted.wait(true), 1);
}

}  // namespace
}  // namespace penstock::dataplane
