// What a tuple costs on its way through a stream and a window: append, close, adding to a window, expiring, look-ups;
// and the merged index against probing a window's slices one by one. Google Benchmark; an item is a tuple, or a key.
// Times are processor times of the measured call alone; its surroundings (the next batch) are left out.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "rdf/dictionary.hpp"
#include "store/store.hpp"
#include "stream/stream.hpp"
#include "stream/window.hpp"

namespace penstock {
namespace {

constexpr std::int64_t kBatchMs = 100;
constexpr std::uint64_t kLabels = 5;

double cpu_seconds() {
    timespec now;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// The measured part of one iteration.
template <class Work>
void measure(benchmark::State& state, Work&& work) {
    const double start = cpu_seconds();
    work();
    state.SetIterationTime(cpu_seconds() - start);
}

/// `operations`: of each iteration.
void finish(benchmark::State& state, std::size_t operations) {
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * operations));
}

struct Columns {
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, p, o;
};

/// Users who do things to items: subjects from a fixed set, three quarters of the objects new.
class Producer {
public:
    Producer(std::size_t tuples_per_batch, std::size_t users) : size_(tuples_per_batch), users_(users) {}

    const Columns& batch(std::int64_t number) {
        columns_.ts.resize(size_);
        columns_.s.resize(size_);
        columns_.p.resize(size_);
        columns_.o.resize(size_);
        for (std::size_t i = 0; i < size_; ++i) {
            columns_.ts[i] = number * kBatchMs + 1 + static_cast<std::int64_t>(i * kBatchMs / size_);
            columns_.s[i] = user();
            columns_.p[i] = make_id(Tag::Iri, 1 + random_() % kLabels);
            columns_.o[i] = random_() % 4 != 0 ? make_id(Tag::Iri, next_++) : user();
        }
        return columns_;
    }
    TermId user() { return make_id(Tag::Iri, 1000 + random_() % users_); }

private:
    std::size_t size_, users_;
    std::uint64_t next_ = 1'000'000'000;
    std::mt19937_64 random_{42};
    Columns columns_;
};

struct Fixture {
    std::string directory;
    Dictionary dictionary;
    std::unique_ptr<Store> store;
    std::unique_ptr<Stream> stream;

    explicit Fixture(bool timing, std::int64_t batch_ms = kBatchMs) {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX").string();
        directory = ::mkdtemp(name.data());
        store = std::make_unique<Store>(directory, 1, std::size_t{1} << 36);
        StreamOptions options;
        options.number = 1;
        options.batch_ms = batch_ms;
        options.all_timing = timing;
        stream = std::make_unique<Stream>(*store, dictionary, options);
    }
    ~Fixture() {
        stream.reset();
        store.reset();
        std::filesystem::remove_all(directory);
    }
    void feed(Producer& producer, std::int64_t first, std::int64_t last) {
        for (std::int64_t batch = first; batch <= last; ++batch) {
            const Columns& c = producer.batch(batch);
            stream->append(c.ts, c.s, c.p, c.o);
            stream->close(batch);
        }
    }
};

/// Makes the window index every label in so many directions.
void ask(const Window& window, const Fixture& fixture, int directions) {
    const TermId stranger = make_id(Tag::Iri, 1);
    Matches none;
    for (std::uint64_t p = 1; p <= kLabels; ++p) {
        const Label label = fixture.store->labels().find(0, make_id(Tag::Iri, p));
        for (int d = 0; d < directions; ++d) window.expand({&stranger, 1}, label, static_cast<Dir>(d), none);
    }
}

enum class Step { Append, Close, Add, Expire };

/// One step of a window in steady state. Arguments: tuples a batch, batches a window, directions that are indexed.
void steady(benchmark::State& state, Step measured) {
    const auto per_batch = static_cast<std::size_t>(state.range(0));
    const std::int64_t batches = state.range(1);
    Fixture fixture(true);
    Producer producer(per_batch, std::max<std::size_t>(100, per_batch));
    TimeWindow window(*fixture.stream);
    fixture.feed(producer, 0, batches - 1);
    window.advance(0, batches * kBatchMs);
    ask(window, fixture, static_cast<int>(state.range(2)));
    std::int64_t batch = batches;
    for (auto _ : state) {
        const auto step = [&](Step which, auto&& work) { which == measured ? measure(state, work) : work(); };
        const Columns& c = producer.batch(batch);
        const std::int64_t start = (batch - batches) * kBatchMs, end = (batch + 1) * kBatchMs;
        step(Step::Append, [&] { fixture.stream->append(c.ts, c.s, c.p, c.o); });
        step(Step::Close, [&] { fixture.stream->close(batch); });
        step(Step::Add, [&] { window.advance(start, end); });
        step(Step::Expire, [&] { window.advance(start + kBatchMs, end); });
        fixture.stream->release(batch - batches);
        ++batch;
    }
    finish(state, per_batch);
    state.counters["bytes_per_tuple"] = static_cast<double>(window.bytes()) / static_cast<double>(window.size());
}

/// Closing a batch whose tuples are all absorbed. Argument: tuples a batch.
void close_absorbing(benchmark::State& state) {
    const auto per_batch = static_cast<std::size_t>(state.range(0));
    Fixture fixture(false);
    Producer producer(per_batch, 10 * per_batch);
    std::int64_t batch = 0;
    for (auto _ : state) {
        const Columns& c = producer.batch(batch);
        fixture.stream->append(c.ts, c.s, c.p, c.o);
        measure(state, [&] { fixture.stream->close(batch); });
        fixture.stream->release(batch++ - 10);
    }
    finish(state, per_batch);
}

constexpr std::int64_t kLong = 1'000;  // batches of a long window

/// Building a long window anew. Arguments: tuples a batch, batches a slice, directions that are indexed.
void build_long(benchmark::State& state) {
    const auto per_batch = static_cast<std::size_t>(state.range(0));
    const std::int64_t slice_ms = state.range(1) * kBatchMs;
    Fixture fixture(true, slice_ms);
    Producer producer(per_batch, 20 * per_batch);
    for (std::int64_t batch = 0; batch < kLong; ++batch) {
        const Columns& c = producer.batch(batch);
        fixture.stream->append(c.ts, c.s, c.p, c.o);
        if ((batch + 1) % state.range(1) == 0) fixture.stream->close(batch / state.range(1));
    }
    for (auto _ : state) {
        TimeWindow window(*fixture.stream);
        ask(window, fixture, static_cast<int>(state.range(2)));
        measure(state, [&] { window.advance(0, kLong * kBatchMs); });
    }
    finish(state, per_batch * static_cast<std::size_t>(kLong));
}

/// A step of a long window, indexed both ways. Argument: tuples a batch.
void step_long(benchmark::State& state) {
    const auto per_batch = static_cast<std::size_t>(state.range(0));
    Fixture fixture(true);
    Producer producer(per_batch, 20 * per_batch);
    fixture.feed(producer, 0, kLong - 1);
    TimeWindow window(*fixture.stream);
    ask(window, fixture, 2);
    window.advance(0, kLong * kBatchMs);
    std::int64_t batch = kLong;
    for (auto _ : state) {
        fixture.feed(producer, batch, batch);
        ++batch;
        measure(state, [&] { window.advance((batch - kLong) * kBatchMs, batch * kBatchMs); });
    }
    finish(state, per_batch);
}

/// Look-ups in a long window by its merged index, or (`sliced`) by an index of each slice. Arguments: tuples a batch,
/// keys a call.
void look_up_long(benchmark::State& state, bool sliced) {
    const auto per_batch = static_cast<std::size_t>(state.range(0));
    Fixture fixture(true);
    Producer producer(per_batch, 20 * per_batch);
    fixture.feed(producer, 0, kLong - 1);
    std::vector<std::unique_ptr<TimeWindow>> windows;
    const std::int64_t each = sliced ? 1 : kLong;
    for (std::int64_t batch = 0; batch < kLong; batch += each) {
        windows.push_back(std::make_unique<TimeWindow>(*fixture.stream));
        ask(*windows.back(), fixture, 2);
        windows.back()->advance(batch * kBatchMs, (batch + each) * kBatchMs);
    }
    const Label label = fixture.store->labels().find(0, make_id(Tag::Iri, 1));
    std::vector<TermId> users(static_cast<std::size_t>(state.range(1)));
    Matches matches;
    for (auto _ : state) {
        std::generate(users.begin(), users.end(), [&] { return producer.user(); });
        matches.clear();
        measure(state, [&] {
            for (const auto& window : windows) window->expand(users, label, Dir::Out, matches);
        });
    }
    finish(state, users.size());
}

void sizes(benchmark::internal::Benchmark* made) {
    made->UseManualTime()->ArgNames({"batch", "batches", "directions"});
    for (const auto& [per_batch, batches] :
         {std::pair<std::int64_t, std::int64_t>{37, 10}, {740, 10}, {10'000, 10}, {1'000, 1'000}})
        for (const std::int64_t directions : {0, 1, 2}) made->Args({per_batch, batches, directions});
}

BENCHMARK_CAPTURE(steady, append, Step::Append)->Apply(sizes);
BENCHMARK_CAPTURE(steady, close, Step::Close)->Apply(sizes);
BENCHMARK_CAPTURE(steady, add, Step::Add)->Apply(sizes);
BENCHMARK_CAPTURE(steady, expire, Step::Expire)->Apply(sizes);
BENCHMARK(close_absorbing)->UseManualTime()->ArgName("batch")->Arg(37)->Arg(740)->Arg(10'000);
BENCHMARK(build_long)
    ->UseManualTime()
    ->Unit(benchmark::kMillisecond)
    ->ArgNames({"batch", "slice", "directions"})
    ->ArgsProduct({{37, 740}, {1, kLong}, {0, 2}});
BENCHMARK(step_long)->UseManualTime()->ArgName("batch")->Arg(37)->Arg(740);
BENCHMARK_CAPTURE(look_up_long, merged, false)
    ->UseManualTime()
    ->ArgNames({"batch", "keys"})
    ->ArgsProduct({{37, 740}, {1, 1'024}});
BENCHMARK_CAPTURE(look_up_long, sliced, true)
    ->UseManualTime()
    ->ArgNames({"batch", "keys"})
    ->ArgsProduct({{37, 740}, {1'024}});

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
