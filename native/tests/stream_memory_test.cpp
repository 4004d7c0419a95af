// A stream whose ids are always new must not grow anything for ever: dictionary, slices, window. Ten million tuples
// with PENSTOCK_LONG set, else three hundred thousand.
#include <algorithm>
#include <cstdlib>
#include <string>

#include "stream/window.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

constexpr std::int64_t kBatchMs = 100;
constexpr std::size_t kBatchTuples = 1000;
constexpr std::int64_t kWindowBatches = 10;

struct Held {
    std::size_t dictionary, terms, live, region, window;
};

class Producer {
public:
    explicit Producer(Fixture& fixture) : fixture_(fixture) {
        predicate_ = fixture.dictionary.intern({Kind::Iri, "urn:at", {}, {}});
    }

    void fill(Stream& stream, std::int64_t batch) {
        ts_.assign(kBatchTuples, batch * kBatchMs + 1);
        s_.clear();
        o_.clear();
        for (std::size_t i = 0; i < kBatchTuples; ++i) {
            s_.push_back(fresh("urn:vehicle:"));
            o_.push_back(fresh("urn:fix:"));
        }
        stream.append(ts_, s_, std::vector<TermId>(kBatchTuples, predicate_), o_);
    }

private:
    TermId fresh(const char* prefix) {
        const std::string text = prefix + std::to_string(next_++);
        return fixture_.dictionary.intern({Kind::Iri, text, {}, {}});
    }
    Fixture& fixture_;
    TermId predicate_;
    std::uint64_t next_ = 0;
    std::vector<std::int64_t> ts_;
    std::vector<TermId> s_, o_;
};

TEST(Memory, ever_new_ids_of_a_timing_stream_leave_it_bounded) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(kBatchMs));
    Producer producer(fixture);
    TimeWindow window(stream);
    CountWindow count(stream, 5000, 700, -1);
    const std::int64_t batches = std::getenv("PENSTOCK_LONG") != nullptr ? 10'000 : 300;
    Held highest{}, early{};
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        fixture.dictionary.set_tick(static_cast<Tick>(batch) + 1);
        producer.fill(stream, batch);
        stream.close(batch);
        window.advance((batch - kWindowBatches) * kBatchMs, (batch + 1) * kBatchMs);
        for (const auto& report : count.take(batch)) count.advance(report.position);
        for (const Dir dir : {Dir::Out, Dir::In}) {
            EXPECT_LE(window.degree(iri(1), 1, dir), 1u);
            EXPECT_LE(count.degree(iri(1), 1, dir), 1u);
        }
        stream.release(std::min(batch - kWindowBatches, count.oldest_batch() - 1));
        fixture.dictionary.sweep(stream.oldest_tick());
        highest = {std::max(highest.dictionary, fixture.dictionary.bytes()),
                   std::max(highest.terms, fixture.dictionary.size()), std::max(highest.live, stream.live_bytes()),
                   std::max(highest.region, stream.held_bytes()),
                   std::max(highest.window, window.bytes() + count.bytes())};
        if (batch == 100) early = highest;
    }
    EXPECT_LE(highest.terms, early.terms + early.terms / 10);
    EXPECT_LE(highest.dictionary, 2 * early.dictionary);
    EXPECT_LE(highest.live, early.live + early.live / 10);
    EXPECT_LE(highest.region, 2 * early.region);
    EXPECT_LE(highest.window, early.window + early.window / 2);
    EXPECT_LE(stream.live_bytes(), (kWindowBatches + 2) * kBatchTuples * 64);
    EXPECT_EQ(fixture.store.edge_count(), 0u);
}

}  // namespace
}  // namespace penstock
