// Readers without locks beside a writer that interns and sweeps. Worth its time under ThreadSanitizer (build.sh tsan).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"

namespace penstock {
namespace {

constexpr Tick kTicks = 300;
constexpr int kTermsPerTick = 40;
constexpr Tick kWindow = 5;  // ticks after which a term may go

std::string name_of(Tick tick, int i) {
    const std::string name = "http://example.org/" + std::to_string(tick) + "/" + std::to_string(i);
    return i % 10 == 0 ? name + std::string(700, 'x') : name;  // some have allocations of their own
}

/// The ids of one tick, from the writer to the readers. A sequence word names the tick, as in a window.
struct Published {
    std::atomic<Tick> tick{0};
    std::array<std::atomic<TermId>, kTermsPerTick> ids{};
};

TEST(DictionaryThreads, ReadersDecodeWhileAWriterInternsAndSweeps) {
    Dictionary d;
    std::array<Published, kTicks + 1> published;
    std::atomic<Tick> newest{0};
    std::atomic<std::uint64_t> decoded{0};
    std::atomic<bool> wrong{false};

    std::thread writer([&] {
        std::vector<std::string> names(kTermsPerTick);
        std::vector<TermView> terms(kTermsPerTick);
        std::vector<TermId> ids(kTermsPerTick);
        for (Tick tick = 1; tick <= kTicks; ++tick) {
            d.set_tick(tick);
            for (int i = 0; i < kTermsPerTick; ++i) {
                names[i] = name_of(tick, i);
                terms[i] = {Kind::Iri, names[i], {}, {}};
            }
            d.intern(terms, ids.data());
            for (int i = 0; i < kTermsPerTick; ++i) published[tick].ids[i].store(ids[i], std::memory_order_relaxed);
            newest.store(tick, std::memory_order_release);
            d.sweep(tick > kWindow ? tick - kWindow : 0);
        }
    });
    const auto read = [&] {
        std::string scratch;
        for (Tick seen = 0; seen < kTicks;) {
            const Dictionary::Lease lease(d);
            // Terms at or after the lease's tick stay: those that are published from now on.
            const Tick begun = d.tick();
            seen = newest.load(std::memory_order_acquire);
            for (Tick tick = begun; tick <= seen && tick > 0; ++tick)
                for (int i = 0; i < kTermsPerTick; ++i) {
                    const TermId id = published[tick].ids[i].load(std::memory_order_relaxed);
                    if (d.view(id, scratch).lexical != name_of(tick, i)) wrong = true;
                    decoded.fetch_add(1, std::memory_order_relaxed);
                }
        }
    };
    std::thread reader(read);
    std::thread other([&] {  // looks terms up, touches and keeps them, reads sizes
        while (newest.load(std::memory_order_acquire) < kTicks) {
            const Dictionary::Lease lease(d);
            const Tick tick = newest.load(std::memory_order_acquire);
            const std::string name = name_of(tick, static_cast<int>(tick % kTermsPerTick));
            const TermId id = d.find({Kind::Iri, name, {}, {}});
            if (id != kUnbound) {
                d.touch(&id, 1);
                if (tick % 50 == 0) d.keep(&id, 1);
            }
            LocalTerms local(d);
            local.fresh_blank();
            local.intern({Kind::Literal, "computed " + name, {}, {}});
            d.fresh_blank();
            (void)d.bytes();
        }
    });
    writer.join();
    reader.join();
    other.join();
    // A reader that was held up may have held its lease over the writer's last sweeps; none is left now.
    d.sweep(kTicks - kWindow);
    EXPECT_FALSE(wrong);
    EXPECT_GE(decoded, static_cast<std::uint64_t>(kTermsPerTick));
    EXPECT_LE(d.size(), (kWindow + 2) * kTermsPerTick + kTicks);
}

TEST(DictionaryThreads, TwoWritersAgreeOnIds) {
    Dictionary d;
    constexpr int kTerms = 20'000;
    std::array<std::vector<TermId>, 2> ids;
    const auto write = [&](std::vector<TermId>& out) {
        for (int i = 0; i < kTerms; ++i) {
            const std::string name = "http://example.org/" + std::to_string(i);
            out.push_back(d.intern({Kind::Iri, name, {}, {}}));
        }
    };
    std::thread one([&] { write(ids[0]); });
    write(ids[1]);
    one.join();
    EXPECT_EQ(ids[0], ids[1]);
    EXPECT_EQ(d.size(), static_cast<std::size_t>(kTerms));
}

}  // namespace
}  // namespace penstock
