// The kernels everything else is made of, one by one: kernels_bench KERNEL. Deterministic data; what is measured runs
// inside measured_section(), so that callgrind counts it alone (--toggle-collect=measured_section). Answers are
// compared with plain containers; a wrong one ends the program with status 1. Prints one JSON object.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "exec/kernels.hpp"
#include "rdf/dictionary.hpp"
#include "store/store.hpp"
#include "stream/stream.hpp"
#include "stream/window.hpp"

/// Not in a namespace and never inlined: callgrind finds it by this name.
extern "C" __attribute__((noinline)) void measured_section(const std::function<void()>& work) { work(); }

namespace penstock {
namespace {

constexpr std::size_t kVertices = 50'000, kEdges = 200'000, kKeys = 1024, kRounds = 40;
constexpr std::size_t kTuples = 740, kBatches = 40;  // a batch of LSBench at x20
constexpr std::int64_t kBatchMs = 100, kHeld = 10;
constexpr std::uint64_t kLabels = 5;

double cpu_nanoseconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

void require(bool right, const char* what) {
    if (right) return;
    std::fprintf(stderr, "wrong answer: %s\n", what);
    std::exit(1);
}

/// Sums up what the measured parts of a kernel took, and over how many operations.
class Meter {
public:
    void run(std::size_t operations, const std::function<void()>& work) {
        const double start = cpu_nanoseconds();
        measured_section(work);
        nanoseconds_ += cpu_nanoseconds() - start;
        operations_ += operations;
    }
    void print(const char* kernel) const {
        std::printf("{\"kernel\": \"%s\", \"operations\": %zu, \"cpu_ns\": %.0f}\n", kernel, operations_, nanoseconds_);
    }

private:
    std::size_t operations_ = 0;
    double nanoseconds_ = 0;
};

TermId iri(std::uint64_t n) { return make_id(Tag::Iri, n); }

using Triple = std::tuple<TermId, TermId, TermId>;

/// Users who do things to items: subjects from a fixed set, three quarters of the objects new.
struct Producer {
    std::mt19937_64 random{42};
    std::uint64_t next = 1'000'000'000;

    std::vector<Triple> batch(std::size_t size) {
        std::vector<Triple> made;
        for (std::size_t i = 0; i < size; ++i) {
            const TermId object = random() % 4 != 0 ? iri(next++) : iri(1000 + random() % kVertices);
            made.emplace_back(iri(1000 + random() % kVertices), iri(1 + random() % kLabels), object);
        }
        return made;
    }
};

/// A store in a directory of its own.
struct World {
    std::string directory;
    Dictionary dictionary;
    std::unique_ptr<Store> store;

    World() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-kernels-XXXXXX").string();
        directory = ::mkdtemp(name.data());
        store = std::make_unique<Store>(directory, 1, std::size_t{1} << 34);
    }
    ~World() {
        store.reset();
        std::filesystem::remove_all(directory);
    }
    std::vector<Edge> edges(const std::vector<Triple>& triples) {
        std::vector<Edge> made;
        for (const auto& [s, p, o] : triples) made.push_back({s, store->labels().intern(0, p), o});
        return made;
    }
};

/// The objects that each (subject, predicate 1) has, as Source::expand would report them for these keys, sorted.
std::vector<std::pair<std::uint32_t, TermId>> brute_force(const std::vector<TermId>& keys,
                                                          const std::set<Triple>& triples) {
    std::vector<std::pair<std::uint32_t, TermId>> found;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        for (auto it = triples.lower_bound({keys[i], iri(1), 0}); it != triples.end(); ++it) {
            const auto& [s, p, o] = *it;
            if (s != keys[i] || p != iri(1)) break;
            found.emplace_back(static_cast<std::uint32_t>(i), o);
        }
    }
    return found;
}

void require_matches(const Matches& matches, const std::vector<TermId>& keys, const std::set<Triple>& triples) {
    std::vector<std::pair<std::uint32_t, TermId>> found;
    for (std::size_t i = 0; i < matches.rows.size(); ++i) found.emplace_back(matches.rows[i], matches.values[i]);
    std::sort(found.begin(), found.end());
    require(found == brute_force(keys, triples), "neighbours");
}

/// Look-ups of random subjects, so many keys a call.
void probe(const Source& source, Label label, const std::set<Triple>& triples, std::size_t group, Meter& meter) {
    std::mt19937_64 random(7);
    for (std::size_t round = 0; round < kRounds; ++round) {
        std::vector<TermId> keys(kKeys);
        std::generate(keys.begin(), keys.end(), [&] { return iri(1000 + random() % kVertices); });
        Matches matches;
        source.expand(keys, label, Dir::Out, matches);  // makes a window's index, and brings this round's lines in
        require_matches(matches, keys, triples);
        meter.run(kKeys, [&] {
            for (std::size_t at = 0; at < kKeys; at += group) {
                matches.clear();
                source.expand(std::span(keys).subspan(at, group), label, Dir::Out, matches);
            }
        });
    }
}

void probe_stored(std::size_t group, Meter& meter) {
    World world;
    const auto triples = Producer().batch(kEdges);
    world.store->commit(world.edges(triples), {});
    const auto view = world.store->view();
    probe(*view, world.store->labels().find(0, iri(1)), {triples.begin(), triples.end()}, group, meter);
}

void edge_test(Meter& meter) {
    World world;
    const auto triples = Producer().batch(kEdges);
    const std::set<Triple> known(triples.begin(), triples.end());
    world.store->commit(world.edges(triples), {});
    const auto view = world.store->view();
    const Label label = world.store->labels().find(0, iri(1));
    std::mt19937_64 random(7);
    for (std::size_t round = 0; round < kRounds; ++round) {
        std::vector<TermId> subjects, objects;
        std::vector<std::uint8_t> found(kKeys);
        for (std::size_t i = 0; i < kKeys; ++i) {  // every other one is an edge, of some label
            const auto& [s, p, o] = triples[random() % kEdges];
            subjects.push_back(s);
            objects.push_back(i % 2 == 0 ? o : iri(1000 + random() % kVertices));
        }
        meter.run(kKeys, [&] { view->contains(subjects, label, objects, found); });
        for (std::size_t i = 0; i < kKeys; ++i)
            require((found[i] != 0) == known.contains({subjects[i], iri(1), objects[i]}), "edge test");
    }
}

void gather_column(Meter& meter) {
    std::mt19937_64 random(7);
    Column from(kEdges), out;
    for (std::size_t i = 0; i < kEdges; ++i) from[i] = iri(i);
    for (std::size_t round = 0; round < kRounds; ++round) {
        std::vector<std::uint32_t> rows(kKeys);
        for (auto& row : rows) row = static_cast<std::uint32_t>(random() % kEdges);
        std::sort(rows.begin(), rows.end());  // as an operator's matches are
        out.clear();
        out.reserve(kKeys);
        meter.run(kKeys, [&] { exec::gather(from, rows, out); });
        for (std::size_t i = 0; i < kKeys; ++i) require(out[i] == iri(rows[i]), "gather");
    }
}

/// A stream that is fed batch by batch, and what it was fed.
struct Fed {
    World world;
    Stream stream;
    Producer producer;
    std::set<Triple> triples;

    explicit Fed(bool timing) : stream(*world.store, world.dictionary, options(timing)) {}
    static StreamOptions options(bool timing) {
        StreamOptions made;
        made.number = 1;
        made.batch_ms = kBatchMs;
        made.all_timing = timing;
        return made;
    }
    /// Appends a batch; returns how it is closed.
    void append(std::int64_t batch, Meter* meter = nullptr) {
        std::vector<std::int64_t> ts;
        std::vector<TermId> s, p, o;
        for (const Triple& triple : producer.batch(kTuples)) {
            ts.push_back(batch * kBatchMs + 1 + static_cast<std::int64_t>(ts.size() * kBatchMs / kTuples));
            s.push_back(std::get<0>(triple));
            p.push_back(std::get<1>(triple));
            o.push_back(std::get<2>(triple));
            triples.insert(triple);
        }
        const auto work = [&] { stream.append(ts, s, p, o); };
        meter != nullptr ? meter->run(kTuples, work) : work();
    }
};

void append(Meter& meter) {
    Fed fed(true);
    for (std::size_t batch = 0; batch < kBatches; ++batch) fed.append(static_cast<std::int64_t>(batch), &meter);
    require(fed.stream.live_tuples() == kBatches * kTuples, "tuples appended");
}

/// Closing a batch: of a stream of timing tuples (slices alone), or of timeless ones (slices, and a commit).
void close(bool timing, Meter& meter) {
    Fed fed(timing);
    for (std::size_t k = 0; k < kBatches; ++k) {
        const auto batch = static_cast<std::int64_t>(k);
        fed.append(batch);
        meter.run(kTuples, [&] { fed.stream.close(batch); });
    }
    require(fed.stream.live_tuples() == kBatches * kTuples, "tuples in slices");
    require(timing ? fed.world.store->edge_count() == 0 : fed.world.store->edge_count() == fed.triples.size(),
            "edges absorbed");
}

void window(bool expiring, Meter& meter) {
    Fed fed(true);
    TimeWindow window(fed.stream);
    fed.append(0);
    fed.stream.close(0);
    window.advance(0, kBatchMs);
    Matches none;
    const TermId nobody = iri(1);
    for (std::uint64_t p = 1; p <= kLabels; ++p)  // from here on both directions of every label are indexed
        for (const Dir dir : {Dir::Out, Dir::In})
            window.expand({&nobody, 1}, fed.world.store->labels().find(0, iri(p)), dir, none);
    for (std::size_t k = 1; k < kBatches; ++k) {
        const auto batch = static_cast<std::int64_t>(k);
        const std::int64_t start = std::max<std::int64_t>(0, batch - kHeld) * kBatchMs, end = (batch + 1) * kBatchMs;
        fed.append(batch);
        fed.stream.close(batch);
        const auto add = [&] { window.advance(start, end); };
        const auto expire = [&] { window.advance(std::max<std::int64_t>(0, batch - kHeld + 1) * kBatchMs, end); };
        if (expiring) {
            add();
            batch >= kHeld ? meter.run(kTuples, expire) : expire();
        } else {
            meter.run(kTuples, add);
            expire();
        }
    }
    std::set<Triple> held;
    fed.stream.slices(static_cast<std::int64_t>(kBatches) - kHeld, static_cast<std::int64_t>(kBatches) - 1,
                      [&](const Stream::SliceView& slice) {
                          for (std::size_t i = 0; i < slice.s.size(); ++i)
                              held.insert({slice.s[i], slice.label[i], slice.o[i]});
                      });
    require(window.size() == held.size(), "tuples in the window");
}

void probe_window(Meter& meter) {
    Fed fed(true);
    TimeWindow window(fed.stream);
    for (std::int64_t batch = 0; batch < kHeld; ++batch) {
        fed.append(batch);
        fed.stream.close(batch);
    }
    window.advance(0, kHeld * kBatchMs);
    probe(window, fed.world.store->labels().find(0, iri(1)), fed.triples, kKeys, meter);
}

/// What a commit of a batch's edges costs by itself.
void absorb(Meter& meter) {
    World world;
    Producer producer;
    std::set<Triple> known;
    const auto base = producer.batch(kEdges);
    known.insert(base.begin(), base.end());
    world.store->commit(world.edges(base), {});
    for (std::size_t k = 1; k <= kBatches; ++k) {
        const auto triples = producer.batch(kTuples);
        known.insert(triples.begin(), triples.end());
        const auto edges = world.edges(triples);
        meter.run(kTuples, [&] { world.store->commit(edges, {1, static_cast<std::int64_t>(k)}); });
        world.store->release(1, static_cast<std::int64_t>(k));
    }
    require(world.store->edge_count() == known.size(), "edges after absorption");
}

bool run(const std::string& kernel, Meter& meter) {
    if (kernel == "probe_stored") return probe_stored(kKeys, meter), true;
    if (kernel == "probe_stored_one") return probe_stored(1, meter), true;
    if (kernel == "edge_test") return edge_test(meter), true;
    if (kernel == "probe_window") return probe_window(meter), true;
    if (kernel == "gather") return gather_column(meter), true;
    if (kernel == "append") return append(meter), true;
    if (kernel == "slice_build") return close(true, meter), true;
    if (kernel == "close_absorbing") return close(false, meter), true;
    if (kernel == "absorb") return absorb(meter), true;
    if (kernel == "window_add") return window(false, meter), true;
    if (kernel == "window_expire") return window(true, meter), true;
    return false;
}

}  // namespace
}  // namespace penstock

int main(int count, char** arguments) {
    penstock::Meter meter;
    if (count != 2 || !penstock::run(arguments[1], meter)) {
        std::fprintf(stderr, "usage: kernels_bench KERNEL (see run() for their names)\n");
        return 2;
    }
    meter.print(arguments[1]);
    return 0;
}
