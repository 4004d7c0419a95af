// What a tuple costs on its way through a stream and a window: append, close, taking into a window, expiring, look-ups;
// and the merged index against probing a window's slices one by one. Build with -DPENSTOCK_BENCH=ON; no arguments.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
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

/// CPU time of this thread: the machine may be busy.
double cpu_nanoseconds() {
    timespec now;
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

template <class F>
double with_clock(F&& f) {
    const double start = cpu_nanoseconds();
    f();
    return cpu_nanoseconds() - start;
}

double median(std::vector<double> values) {
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
    return values[values.size() / 2];
}

/// What f costs, less what looking at the clock does.
template <class F>
double nanoseconds(F&& f) {
    static const double clock = [] {
        std::vector<double> spent(1000);
        std::generate(spent.begin(), spent.end(), [] { return with_clock([] {}); });
        return median(spent);
    }();
    return with_clock(f) - clock;
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

struct World {
    std::string directory;
    Dictionary dictionary;
    std::unique_ptr<Store> store;
    std::unique_ptr<Stream> stream;

    explicit World(bool timing, std::int64_t batch_ms = kBatchMs) {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-bench-XXXXXX").string();
        directory = ::mkdtemp(name.data());
        store = std::make_unique<Store>(directory, 1, std::size_t{1} << 36);
        StreamOptions options;
        options.number = 1;
        options.batch_ms = batch_ms;
        options.all_timing = timing;
        stream = std::make_unique<Stream>(*store, dictionary, options);
    }
    ~World() {
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

void ask(const Window& window, const World& world, int directions) {
    const TermId nobody = make_id(Tag::Iri, 1);
    Matches none;
    for (std::uint64_t p = 1; p <= kLabels; ++p) {
        const Label label = world.store->labels().find(0, make_id(Tag::Iri, p));
        for (int d = 0; d < directions; ++d) window.expand({&nobody, 1}, label, static_cast<Dir>(d), none);
    }
}

void run_steady(std::size_t per_batch, std::int64_t batches, int directions) {
    World world(true);
    Producer producer(per_batch, std::max<std::size_t>(100, per_batch));
    TimeWindow window(*world.stream);
    world.feed(producer, 0, batches - 1);
    window.advance(0, batches * kBatchMs);
    ask(window, world, directions);
    std::vector<double> append, close, add, expire;
    const std::int64_t rounds = std::max<std::int64_t>(20, 2'000'000 / static_cast<std::int64_t>(per_batch) / 4);
    for (std::int64_t batch = batches; batch < batches + rounds; ++batch) {
        const Columns& c = producer.batch(batch);
        append.push_back(nanoseconds([&] { world.stream->append(c.ts, c.s, c.p, c.o); }));
        close.push_back(nanoseconds([&] { world.stream->close(batch); }));
        const std::int64_t end = (batch + 1) * kBatchMs;
        add.push_back(nanoseconds([&] { window.advance((batch - batches) * kBatchMs, end); }));
        expire.push_back(nanoseconds([&] { window.advance((batch - batches + 1) * kBatchMs, end); }));
        world.stream->release(batch - batches);
    }
    const double tuples = static_cast<double>(per_batch);
    std::printf("%9zu %7zu %10s %8.1f %8.1f %8.1f %8.1f %10.1f\n", per_batch * static_cast<std::size_t>(batches),
                per_batch,
                directions == 0   ? "none"
                : directions == 1 ? "out"
                                  : "out+in",
                median(append) / tuples, median(close) / tuples, median(add) / tuples, median(expire) / tuples,
                static_cast<double>(window.bytes()) / static_cast<double>(window.size()));
}

/// Closing batches whose tuples are all absorbed.
void run_absorbing(std::size_t per_batch) {
    World world(false);
    Producer producer(per_batch, 10 * per_batch);
    std::vector<double> close;
    for (std::int64_t batch = 0; batch < 200; ++batch) {
        const Columns& c = producer.batch(batch);
        world.stream->append(c.ts, c.s, c.p, c.o);
        close.push_back(nanoseconds([&] { world.stream->close(batch); }));
        world.stream->release(batch - 10);
    }
    std::printf("%9zu %8.1f\n", per_batch, median(close) / static_cast<double>(per_batch));
}

double lookup(const std::vector<const Window*>& windows, Producer& producer, Label label, std::size_t keys, Dir dir) {
    std::vector<TermId> users(keys);
    Matches matches;
    std::vector<double> spent;
    const std::size_t rounds = std::max<std::size_t>(5, 2'000'000 / keys / windows.size());
    for (std::size_t round = 0; round < rounds; ++round) {
        std::generate(users.begin(), users.end(), [&] { return producer.user(); });
        matches.clear();
        spent.push_back(nanoseconds([&] {
            for (const Window* window : windows) window->expand(users, label, dir, matches);
        }));
    }
    return median(spent) / static_cast<double>(keys);
}

/// Milliseconds to build the window of these batches anew, with so many directions indexed.
double build(const World& world, std::int64_t batches, int directions) {
    std::vector<double> spent;
    for (int round = 0; round < 5; ++round) {
        TimeWindow window(*world.stream);
        ask(window, world, directions);
        spent.push_back(nanoseconds([&] { window.advance(0, batches * kBatchMs); }) / 1e6);
    }
    return median(spent);
}

/// A long window: the merged index against one index for each slice, and against slices merged before they are read.
void run_long(std::size_t per_batch, std::int64_t batches) {
    World world(true);
    Producer producer(per_batch, 20 * per_batch);
    world.feed(producer, 0, batches + 50);
    World whole(true, batches * kBatchMs);  // all of the window in one slice
    Producer again(per_batch, 20 * per_batch);
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        const Columns& c = again.batch(batch);
        whole.stream->append(c.ts, c.s, c.p, c.o);
    }
    whole.stream->close(0);
    const double built[] = {build(world, batches, 0), build(world, batches, 2), build(whole, batches, 0),
                            build(whole, batches, 2)};

    const Label label = world.store->labels().find(0, make_id(Tag::Iri, 1));
    TimeWindow merged(*world.stream);
    ask(merged, world, 2);
    merged.advance(0, batches * kBatchMs);
    std::vector<double> steps;
    for (std::int64_t step = 1; step <= 50; ++step) {
        steps.push_back(nanoseconds([&] { merged.advance(step * kBatchMs, (batches + step) * kBatchMs); }) / 1e3);
    }
    std::vector<std::unique_ptr<TimeWindow>> slices;
    std::vector<const Window*> probed;
    for (std::int64_t batch = 0; batch < batches; ++batch) {
        slices.push_back(std::make_unique<TimeWindow>(*world.stream));
        ask(*slices.back(), world, 2);
        slices.back()->advance(batch * kBatchMs, (batch + 1) * kBatchMs);
        probed.push_back(slices.back().get());
    }
    std::printf("%6zu %8zu %8.1f %8.1f %8.1f %8.1f %10.1f %10.1f %10.1f %12.1f\n", per_batch, merged.size(), built[0],
                built[1], built[2], built[3], median(steps), lookup({&merged}, producer, label, 1, Dir::Out),
                lookup({&merged}, producer, label, 1024, Dir::Out), lookup(probed, producer, label, 1024, Dir::Out));
}

}  // namespace
}  // namespace penstock

int main() {
    using namespace penstock;
    std::printf("Steady state, nanoseconds a tuple\n%9s %7s %10s %8s %8s %8s %8s %10s\n", "window", "batch", "indexed",
                "append", "close", "add", "expire", "B/tuple");
    for (const auto& [per_batch, batches] :
         {std::pair<std::size_t, std::int64_t>{37, 10}, {740, 10}, {10'000, 10}, {1'000, 1'000}}) {
        for (int directions = 0; directions <= 2; ++directions) run_steady(per_batch, batches, directions);
    }
    std::printf("\nClosing with absorption, nanoseconds a tuple\n%9s %8s\n", "batch", "close");
    for (const std::size_t per_batch : {37, 740, 10'000}) run_absorbing(per_batch);
    std::printf(
        "\nWindow of 1,000 batches: milliseconds to build it without / with both directions, from its slices and from "
        "one\n"
        "slice; microseconds a step; nanoseconds a key, one at a time, in batches, and probing an index of each slice\n"
        "%6s %8s %8s %8s %8s %8s %10s %10s %10s %12s\n",
        "batch", "window", "none", "both", "1: none", "1: both", "step", "1 key", "1024 keys", "1024, slices");
    for (const std::size_t per_batch : {37, 740}) run_long(per_batch, 1'000);
}
