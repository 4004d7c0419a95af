// The stored graph: bulk commit, small commits, look-ups with hot and with cold caches, memory a triple. Google
// Benchmark; an item is a triple, or a key. PENSTOCK_BENCH_IDS names triples as encode_triples.py writes them; without
// it, a synthetic social graph of two million triples is stored.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "store/store.hpp"

namespace penstock {
namespace {

/// Processor time of this thread, so that a busy machine distorts less.
double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

template <class Work>
void measure(benchmark::State& state, Work&& work) {
    const double start = cpu_seconds();
    work();
    state.SetIterationTime(cpu_seconds() - start);
}

struct Triples {
    std::vector<TermId> s, p, o;
    std::size_t size() const { return s.size(); }
};

Triples read_triples(const char* path) {
    const std::size_t n = std::filesystem::file_size(path) / 24;
    std::ifstream file(path, std::ios::binary);
    Triples triples;
    for (auto* column : {&triples.s, &triples.p, &triples.o}) {
        column->resize(n);
        file.read(reinterpret_cast<char*>(column->data()), static_cast<std::streamsize>(n * 8));
    }
    return triples;
}

/// Vertices with a few labels each, three quarters of the lists with one value, some hubs.
Triples make_triples(std::size_t n) {
    std::mt19937_64 random(1);
    Triples triples;
    const std::size_t vertices = n / 4;
    for (std::size_t i = 0; i < n; ++i) {
        const auto label = random() % 12;
        const bool hub = label == 0;
        triples.s.push_back(make_id(Tag::Iri, 1000 + random() % vertices));
        triples.p.push_back(make_id(Tag::Iri, 1 + label));
        triples.o.push_back(make_id(Tag::Iri, hub ? 100 + random() % 50 : 1000 + random() % vertices));
    }
    return triples;
}

const Triples& triples() {
    static const Triples all = [] {
        const char* path = std::getenv("PENSTOCK_BENCH_IDS");
        return path != nullptr ? read_triples(path) : make_triples(2'000'000);
    }();
    return all;
}

/// A store in a directory of its own.
class Stored {
public:
    Stored() {
        char name[] = "/dev/shm/penstock-bench-XXXXXX";
        directory_ = ::mkdtemp(name);
        store = std::make_unique<Store>(directory_, 1, std::size_t{1} << 36);
    }
    ~Stored() {
        store.reset();
        std::filesystem::remove_all(directory_);
    }
    std::vector<Edge> edges(std::size_t begin, std::size_t end) {
        std::vector<Edge> edges;
        for (std::size_t i = begin; i < end; ++i)
            edges.push_back({triples().s[i], store->labels().intern(0, triples().p[i]), triples().o[i]});
        return edges;
    }
    void report(benchmark::State& state) const {
        const auto count = static_cast<double>(store->edge_count());
        state.counters["bytes_per_triple"] = static_cast<double>(store->used_bytes()) / count;
        state.counters["writer_bytes"] = static_cast<double>(store->index_bytes());
    }

    std::unique_ptr<Store> store;

private:
    std::string directory_;
};

/// All triples in one commit.
void commit_bulk(benchmark::State& state) {
    std::unique_ptr<Stored> stored;
    for (auto _ : state) {
        stored.reset();
        stored = std::make_unique<Stored>();
        const auto all = stored->edges(0, triples().size());
        measure(state, [&] { stored->store->commit(all, {}); });
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * triples().size()));
    stored->report(state);
}

/// Commits of so many triples behind a bulk commit of half of them. Iterations end with the triples.
void commit_small(benchmark::State& state) {
    const auto size = static_cast<std::size_t>(state.range(0));
    Stored stored;
    std::size_t at = triples().size() / 2;
    stored.store->commit(stored.edges(0, at), {});
    std::int64_t number = 0;
    for (auto _ : state) {
        if (at + size > triples().size()) at = triples().size() / 2;  // from here on nothing is new
        const auto some = stored.edges(at, at + size);
        ++number;
        measure(state, [&] { stored.store->commit(some, {1, number}); });
        stored.store->release(1, number);
        at += size;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * size));
    stored.report(state);
}

/// The whole graph, and keys of the label that has the most subjects: in random order, and a thousand of them again and
/// again.
struct Keys {
    static const Keys& all() {
        static const Keys keys;
        return keys;
    }
    Stored stored;
    std::unique_ptr<Source> view;
    Label label = 1;
    std::vector<TermId> cold, hot, objects;  // objects: of `hot`, one each

private:
    Keys() {
        stored.store->commit(stored.edges(0, triples().size()), {});
        view = stored.store->view();
        for (Label l = 1; l <= stored.store->labels().size(); ++l)
            if (view->stats(l).subjects > view->stats(label).subjects) label = l;
        view->vertices(label, Dir::Out, cold);
        std::shuffle(cold.begin(), cold.end(), std::mt19937_64(2));
        const auto few = static_cast<std::ptrdiff_t>(std::min<std::size_t>(1000, cold.size()));
        while (hot.size() < 200'000) hot.insert(hot.end(), cold.begin(), cold.begin() + few);
        Matches matches;
        view->expand(hot, label, Dir::Out, matches);
        objects.resize(hot.size());
        for (std::size_t i = matches.rows.size(); i > 0; --i) objects[matches.rows[i - 1]] = matches.values[i - 1];
    }
};

/// Runs call(begin) for groups of keys, one after the other, over and over.
template <class Call>
void in_groups(benchmark::State& state, std::size_t keys, Call call) {
    const auto group = static_cast<std::size_t>(state.range(0));
    std::size_t at = 0;
    for (auto _ : state) {
        call(at, group);
        at = at + 2 * group <= keys ? at + group : 0;
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * group));
}

void expand_hot(benchmark::State& state) {
    const Keys& keys = Keys::all();
    Matches matches;
    in_groups(state, keys.hot.size(), [&](std::size_t at, std::size_t n) {
        matches.clear();
        keys.view->expand(std::span(keys.hot).subspan(at, n), keys.label, Dir::Out, matches);
    });
}

void contains_hot(benchmark::State& state) {
    const Keys& keys = Keys::all();
    std::vector<std::uint8_t> found(keys.hot.size());
    in_groups(state, keys.hot.size(), [&](std::size_t at, std::size_t n) {
        keys.view->contains(std::span(keys.hot).subspan(at, n), keys.label, std::span(keys.objects).subspan(at, n),
                            std::span(found).subspan(at, n));
    });
}

void degree_hot(benchmark::State& state) {
    const Keys& keys = Keys::all();
    in_groups(state, keys.hot.size(), [&](std::size_t at, std::size_t) {
        benchmark::DoNotOptimize(keys.view->degree(keys.hot[at], keys.label, Dir::Out));
    });
}

/// Each iteration looks up 20,000 keys once, after the caches were flushed.
void expand_cold(benchmark::State& state) {
    const Keys& keys = Keys::all();
    const auto group = static_cast<std::size_t>(state.range(0));
    const std::size_t count = std::min<std::size_t>(keys.cold.size(), 20'000) / group * group;
    std::vector<char> flushed(std::size_t{256} << 20);
    Matches matches;
    for (auto _ : state) {
        for (std::size_t i = 0; i < flushed.size(); i += 64) flushed[i]++;
        measure(state, [&] {
            for (std::size_t at = 0; at < count; at += group) {
                matches.clear();
                keys.view->expand(std::span(keys.cold).subspan(at, group), keys.label, Dir::Out, matches);
            }
        });
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * count));
}

void make_view(benchmark::State& state) {
    const Keys& keys = Keys::all();
    for (auto _ : state) benchmark::DoNotOptimize(keys.stored.store->view());
}

BENCHMARK(commit_bulk)->UseManualTime()->Unit(benchmark::kMillisecond);
BENCHMARK(commit_small)->UseManualTime()->ArgName("triples")->Arg(10)->Arg(100)->Arg(1'000);
BENCHMARK(expand_hot)->ArgName("keys")->Arg(1)->Arg(16)->Arg(1'024);
BENCHMARK(contains_hot)->ArgName("keys")->Arg(1'024);
BENCHMARK(degree_hot)->ArgName("keys")->Arg(1);
BENCHMARK(expand_cold)->UseManualTime()->ArgName("keys")->Arg(1)->Arg(1'024)->Unit(benchmark::kMillisecond);
BENCHMARK(make_view);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
