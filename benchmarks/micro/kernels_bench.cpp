// The kernels that everything else is made of, one benchmark each (Google Benchmark). Data is deterministic. What is
// measured runs inside measured_section(), so that callgrind counts it alone (--toggle-collect=measured_section); the
// reported time is the processor time of that section. Each benchmark compares its results with plain containers and
// fails on a difference.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
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

double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

void require(bool right, const char* what) {
    if (!right) throw std::runtime_error(std::string("wrong result: ") + what);
}

/// The measured part of one iteration.
void measure(benchmark::State& state, const std::function<void()>& work) {
    const double start = cpu_seconds();
    measured_section(work);
    state.SetIterationTime(cpu_seconds() - start);
}

/// `operations`: of each iteration.
void finish(benchmark::State& state, std::size_t operations) {
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * operations));
}

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
struct Fixture {
    std::string directory;
    Dictionary dictionary;
    std::unique_ptr<Store> store;

    Fixture() {
        std::string name = (std::filesystem::temp_directory_path() / "penstock-kernels-XXXXXX").string();
        directory = ::mkdtemp(name.data());
        store = std::make_unique<Store>(directory, 1, std::size_t{1} << 34);
    }
    ~Fixture() {
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
void probe(const Source& source, Label label, const std::set<Triple>& triples, std::size_t group,
           benchmark::State& state) {
    std::mt19937_64 random(7);
    for (auto _ : state) {
        std::vector<TermId> keys(kKeys);
        std::generate(keys.begin(), keys.end(), [&] { return iri(1000 + random() % kVertices); });
        Matches matches;
        source.expand(keys, label, Dir::Out, matches);  // makes a window's index, and brings this round's lines in
        require_matches(matches, keys, triples);
        measure(state, [&] {
            for (std::size_t at = 0; at < kKeys; at += group) {
                matches.clear();
                source.expand(std::span(keys).subspan(at, group), label, Dir::Out, matches);
            }
        });
    }
    finish(state, kKeys);
}

void probe_stored(benchmark::State& state, std::size_t group) {
    Fixture fixture;
    const auto triples = Producer().batch(kEdges);
    fixture.store->commit(fixture.edges(triples), {});
    const auto view = fixture.store->view();
    probe(*view, fixture.store->labels().find(0, iri(1)), {triples.begin(), triples.end()}, group, state);
}

void edge_test(benchmark::State& state) {
    Fixture fixture;
    const auto triples = Producer().batch(kEdges);
    const std::set<Triple> known(triples.begin(), triples.end());
    fixture.store->commit(fixture.edges(triples), {});
    const auto view = fixture.store->view();
    const Label label = fixture.store->labels().find(0, iri(1));
    std::mt19937_64 random(7);
    for (auto _ : state) {
        std::vector<TermId> subjects, objects;
        std::vector<std::uint8_t> found(kKeys);
        for (std::size_t i = 0; i < kKeys; ++i) {  // every other one is an edge, of some label
            const auto& [s, p, o] = triples[random() % kEdges];
            subjects.push_back(s);
            objects.push_back(i % 2 == 0 ? o : iri(1000 + random() % kVertices));
        }
        measure(state, [&] { view->contains(subjects, label, objects, found); });
        for (std::size_t i = 0; i < kKeys; ++i)
            require((found[i] != 0) == known.contains({subjects[i], iri(1), objects[i]}), "edge test");
    }
    finish(state, kKeys);
}

void gather(benchmark::State& state) {
    std::mt19937_64 random(7);
    Column from(kEdges), out;
    for (std::size_t i = 0; i < kEdges; ++i) from[i] = iri(i);
    for (auto _ : state) {
        std::vector<std::uint32_t> rows(kKeys);
        for (auto& row : rows) row = static_cast<std::uint32_t>(random() % kEdges);
        std::sort(rows.begin(), rows.end());  // as an operator's matches are
        out.clear();
        out.reserve(kKeys);
        measure(state, [&] { exec::gather(from, rows, out); });
        for (std::size_t i = 0; i < kKeys; ++i) require(out[i] == iri(rows[i]), "gather");
    }
    finish(state, kKeys);
}

/// A stream that is fed batch by batch, and what it was fed.
struct Fed {
    Fixture fixture;
    Stream stream;
    Producer producer;
    std::set<Triple> triples;

    explicit Fed(bool timing) : stream(*fixture.store, fixture.dictionary, options(timing)) {}
    static StreamOptions options(bool timing) {
        StreamOptions made;
        made.number = 1;
        made.batch_ms = kBatchMs;
        made.all_timing = timing;
        return made;
    }
    /// Appends a batch, measured where there is a state.
    void append(std::int64_t batch, benchmark::State* state = nullptr) {
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
        state != nullptr ? measure(*state, work) : work();
    }
};

void append(benchmark::State& state) {
    Fed fed(true);
    std::int64_t batch = 0;
    for (auto _ : state) fed.append(batch++, &state);
    require(fed.stream.live_tuples() == state.iterations() * kTuples, "tuples appended");
    finish(state, kTuples);
}

/// Closing a batch: of a stream of timing tuples (slices alone), or of timeless ones (slices, and a commit).
void close(benchmark::State& state, bool timing) {
    Fed fed(timing);
    std::int64_t batch = 0;
    for (auto _ : state) {
        fed.append(batch);
        measure(state, [&] { fed.stream.close(batch); });
        ++batch;
    }
    finish(state, kTuples);
    require(fed.stream.live_tuples() == state.iterations() * kTuples, "tuples in slices");
    require(timing ? fed.fixture.store->edge_count() == 0 : fed.fixture.store->edge_count() == fed.triples.size(),
            "edges absorbed");
}

/// One step of a window that holds kHeld batches: adding the newest, or expiring the oldest.
void window(benchmark::State& state, bool expiring) {
    Fed fed(true);
    TimeWindow window(fed.stream);
    std::int64_t batch = 0;
    const auto close_next = [&] {
        fed.append(batch);
        fed.stream.close(batch++);
    };
    while (batch < kHeld) close_next();
    Matches none;
    window.advance(0, kBatchMs);
    const TermId stranger = iri(1);
    for (std::uint64_t p = 1; p <= kLabels; ++p)  // from here on both directions of every label are indexed
        for (const Dir dir : {Dir::Out, Dir::In})
            window.expand({&stranger, 1}, fed.fixture.store->labels().find(0, iri(p)), dir, none);
    window.advance(0, batch * kBatchMs);
    for (auto _ : state) {
        close_next();
        const std::int64_t start = (batch - 1 - kHeld) * kBatchMs, end = batch * kBatchMs;
        const auto add = [&] { window.advance(start, end); };
        const auto expire = [&] { window.advance(start + kBatchMs, end); };
        if (expiring) add();
        measure(state, expiring ? std::function<void()>(expire) : std::function<void()>(add));
        if (!expiring) expire();
    }
    finish(state, kTuples);
    std::set<Triple> held;
    fed.stream.slices(batch - kHeld, batch - 1, [&](const Stream::SliceView& slice) {
        for (std::size_t i = 0; i < slice.s.size(); ++i) held.insert({slice.s[i], slice.label[i], slice.o[i]});
    });
    require(window.size() == held.size(), "tuples in the window");
}

void probe_window(benchmark::State& state) {
    Fed fed(true);
    TimeWindow window(fed.stream);
    for (std::int64_t batch = 0; batch < kHeld; ++batch) {
        fed.append(batch);
        fed.stream.close(batch);
    }
    window.advance(0, kHeld * kBatchMs);
    probe(window, fed.fixture.store->labels().find(0, iri(1)), fed.triples, kKeys, state);
}

/// What a commit of a batch's edges costs by itself.
void absorb(benchmark::State& state) {
    Fixture fixture;
    Producer producer;
    std::set<Triple> known;
    const auto base = producer.batch(kEdges);
    known.insert(base.begin(), base.end());
    fixture.store->commit(fixture.edges(base), {});
    std::int64_t batch = 0;
    for (auto _ : state) {
        const auto triples = producer.batch(kTuples);
        known.insert(triples.begin(), triples.end());
        const auto edges = fixture.edges(triples);
        ++batch;
        measure(state, [&] { fixture.store->commit(edges, {1, batch}); });
        fixture.store->release(1, batch);
    }
    finish(state, kTuples);
    require(fixture.store->edge_count() == known.size(), "edges after absorption");
}

// The number of iterations is fixed: the same data, and the same instructions, in every run.
void over_keys(benchmark::internal::Benchmark* kernel) { kernel->UseManualTime()->Iterations(kRounds); }
void over_batches(benchmark::internal::Benchmark* kernel) { kernel->UseManualTime()->Iterations(kBatches); }

BENCHMARK_CAPTURE(probe_stored, many, kKeys)->Apply(over_keys);
BENCHMARK_CAPTURE(probe_stored, one, 1)->Apply(over_keys);
BENCHMARK(edge_test)->Apply(over_keys);
BENCHMARK(probe_window)->Apply(over_keys);
BENCHMARK(gather)->Apply(over_keys);
BENCHMARK(append)->Apply(over_batches);
BENCHMARK_CAPTURE(close, timing, true)->Apply(over_batches);
BENCHMARK_CAPTURE(close, absorbing, false)->Apply(over_batches);
BENCHMARK(absorb)->Apply(over_batches);
BENCHMARK_CAPTURE(window, add, false)->Apply(over_batches);
BENCHMARK_CAPTURE(window, expire, true)->Apply(over_batches);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
