// One execution of a standing query between two batches of its streams, which push its code and data out of the caches:
// L1-L6 over the LSBench sample, plans as the planner makes them. Google Benchmark; PENSTOCK_BENCH_LSBENCH names
// lsbench-ids of the shared data, without which nothing is registered. Arguments of a benchmark: the rate (x1, x20,
// x100). `first` is the execution right after a batch, `again` the one behind it, `inject` the injection of a batch.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "exec/executor.hpp"
#include "store/store.hpp"
#include "stream/stream.hpp"
#include "stream/window.hpp"

namespace penstock {
namespace {

using Dict = Spec::Dict;
using List = Spec::List;

constexpr std::int64_t kBatchMs = 100, kWindowMs = 1000;

struct StreamKind {
    const char* file;
    int rate;  // triples a second at x1
    bool timing;
};
constexpr StreamKind kStreams[] = {{"stream_rdfPostStream.nt", 100, false},
                                   {"stream_rdfPostLikeStream.nt", 33, false},
                                   {"stream_rdfPhotoStream.nt", 80, false},
                                   {"stream_rdfPhotoLikeStream.nt", 100, false},
                                   {"stream_gpsStream.nt", 60, true}};
enum StreamName : std::size_t { kPost, kPostLike, kPhoto, kPhotoLike, kGps, kStreamCount };

TermId term(std::uint64_t number) { return make_id(Tag::Iri, number + 1); }

struct Columns {
    std::vector<std::int64_t> ts;
    std::vector<TermId> s, p, o;
};

Columns read(const std::string& directory, const std::string& name) {
    std::FILE* pipe = ::popen(("gzip -dc " + directory + "/" + name + ".gz").c_str(), "r");
    if (pipe == nullptr) throw std::runtime_error("cannot run gzip");
    Columns rows;
    unsigned long long s, p, o;
    while (std::fscanf(pipe, "%llu %llu %llu", &s, &p, &o) == 3) {
        rows.s.push_back(term(s));
        rows.p.push_back(term(p));
        rows.o.push_back(term(o));
    }
    if (::pclose(pipe) != 0 || rows.s.empty()) throw std::runtime_error("cannot read " + name);
    return rows;
}

Spec var(std::uint64_t slot) { return Dict{{"var", slot}}; }
Spec stored() { return List{Dict{{"src", 0}, {"graphs", List{TermId{0}}}}}; }
Spec window(std::uint64_t first) { return List{Dict{{"src", first}}}; }
Spec both_windows() { return List{Dict{{"src", 1}}, Dict{{"src", 2}}}; }

struct Step {
    Spec s, p, o, dataset;
};

Spec plan_of(const std::vector<Step>& steps, int seed, List answer) {
    std::uint64_t id = 0;
    Spec node = Dict{{"op", "seed"}, {"id", id++}};
    for (const Step& step : steps) {
        node = Dict{{"op", "scan"},           {"id", id++}, {"in", node}, {"s", step.s}, {"p", step.p}, {"o", step.o},
                    {"dataset", step.dataset}};
    }
    node = Dict{{"op", "project"}, {"id", id++}, {"in", node}, {"slots", answer}};
    List slots;
    for (int slot = 0; slot < seed; ++slot) slots.emplace_back(slot);
    return Dict{{"slots", 8}, {"seed", slots}, {"root", node}, {"subplans", List{}}};
}

struct Query {
    const char* name;
    Spec plan;
    TermId parameter;  // 0: none
    std::vector<StreamName> windows;
};

std::vector<Query> queries() {
    const auto p = [](std::uint64_t number) -> Spec { return Dict{{"id", term(number)}}; };
    const Spec account = p(18), subscriber = p(20), knows = p(24), creator = p(38), like = p(44), container = p(49),
               user_tag = p(50), hash_tag = p(52);
    const TermId user = term(187756), person = term(378978);
    std::vector<Query> made;
    made.push_back({"L1", plan_of({{var(1), var(3), var(2), both_windows()}}, 2, {0, 1, 3, 2}), user, {kPost, kGps}});
    made.push_back({"L2",
                    plan_of({{var(2), account, var(1), stored()}, {var(2), creator, var(3), window(1)}}, 2, {0, 1, 3}),
                    person,
                    {kPost}});
    made.push_back({"L3",
                    plan_of({{var(2), account, var(1), stored()},
                             {var(2), knows, var(3), stored()},
                             {var(3), creator, var(4), window(1)}},
                            2, {0, 1, 3, 4}),
                    person,
                    {kPost}});
    made.push_back({"L4",
                    plan_of({{var(1), creator, var(2), window(1)},
                             {var(1), creator, var(3), window(1)},
                             {var(2), hash_tag, var(4), window(1)},
                             {var(3), hash_tag, var(4), window(1)}},
                            1, {0, 2, 3, 4}),
                    0,
                    {kPost}});
    made.push_back({"L5",
                    plan_of({{var(1), user_tag, var(2), window(1)},
                             {var(3), like, var(1), window(2)},
                             {var(2), knows, var(3), stored()}},
                            1, {0, 2, 3, 1}),
                    0,
                    {kPhoto, kPhotoLike}});
    made.push_back({"L6",
                    plan_of({{var(1), container, var(2), window(1)},
                             {var(3), subscriber, var(1), stored()},
                             {var(4), like, var(2), window(2)},
                             {var(3), knows, var(4), stored()}},
                            1, {0, 3, 4, 2, 1}),
                    0,
                    {kPost, kPostLike}});
    return made;
}

double now_s() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

enum class Part { First, Again, Inject };

/// Larger than a second-level cache; stands for whatever else the process does between two executions.
class Eviction {
public:
    void operator()() {
        for (std::size_t i = 0; i < bytes_.size(); i += 64) sum_ += ++bytes_[i];
        if (sum_ == 0) std::abort();  // keeps the loop
    }

private:
    std::vector<unsigned char> bytes_ = std::vector<unsigned char>(std::size_t{4} << 20);
    unsigned long long sum_ = 0;
};

class Bench {
public:
    Bench(const std::string& data, int rate, std::string directory) : directory_(std::move(directory)) {
        for (const StreamKind& kind : kStreams) {
            Columns rows = read(data, kind.file);
            for (std::size_t i = 0; i < rows.s.size(); ++i)
                rows.ts.push_back(1 + static_cast<std::int64_t>(1000 * i) / (kind.rate * rate));
            streams_.push_back(std::move(rows));
        }
        stored_ = read(data, "id_mr0_sibdataset.nt");
    }

    void measure(benchmark::State& state, const Query& query, Part measured) {
        std::filesystem::remove_all(directory_);
        std::filesystem::create_directories(directory_);
        Dictionary dictionary;
        Store store(directory_, 1, std::size_t{4} << 30);
        load(store);
        std::vector<std::unique_ptr<Stream>> streams;
        for (std::uint32_t i = 0; i < kStreamCount; ++i) {
            StreamOptions options;
            options.number = i + 1;
            options.all_timing = kStreams[i].timing;
            streams.push_back(std::make_unique<Stream>(store, dictionary, options));
        }
        std::vector<std::unique_ptr<TimeWindow>> windows;
        for (StreamName name : query.windows) windows.push_back(std::make_unique<TimeWindow>(*streams[name]));
        const Plan plan(query.plan);
        Table seed;
        seed.slots = plan.seed();
        seed.rows = 1;
        seed.columns = {{1}};
        if (query.parameter != 0) seed.columns.push_back({query.parameter});

        std::size_t rows = 0;
        std::int64_t batch = 0;
        Eviction evict;
        const auto timed = [&](Part part, auto&& work) {
            const double began = now_s();
            work();
            if (part == measured) state.SetIterationTime(now_s() - began);
        };
        const auto round = [&] {
            timed(Part::Inject, [&] {
                for (std::size_t i = 0; i < streams.size(); ++i) inject(*streams[i], streams_[i], batch);
            });
            const std::int64_t end = ++batch * kBatchMs;
            std::vector<const Source*> sources(1);
            for (auto& window : windows) {
                window->advance(end - kWindowMs, end);
                sources.push_back(window.get());
            }
            const auto view = store.view();
            sources[0] = view.get();
            evict();
            for (const Part part : {Part::First, Part::Again}) {
                LocalTerms terms(dictionary);
                Budget budget(60.0, std::size_t{1} << 30);
                ExprContext context{terms, budget};
                const RunInput input{&seed, sources, &store.labels(), &context};
                timed(part, [&] { rows += plan.run(input)->rows; });
            }
        };
        for (std::int64_t k = 0; k < kWindowMs / kBatchMs; ++k) round();  // until the windows are full
        rows = 0;
        for (auto _ : state) round();
        state.counters["rows"] = benchmark::Counter(static_cast<double>(rows) / 2, benchmark::Counter::kAvgIterations);
        std::filesystem::remove_all(directory_);
    }

private:
    void load(Store& store) {
        std::vector<Edge> edges;
        for (std::size_t i = 0; i < stored_.s.size(); ++i)
            edges.push_back({stored_.s[i], store.labels().intern(0, stored_.p[i]), stored_.o[i]});
        store.commit(edges, {});
    }
    static void inject(Stream& stream, const Columns& rows, std::int64_t batch) {
        const auto at = [&](std::int64_t time) {
            return static_cast<std::size_t>(std::upper_bound(rows.ts.begin(), rows.ts.end(), time) - rows.ts.begin());
        };
        const std::size_t from = at(batch * kBatchMs), n = at((batch + 1) * kBatchMs) - from;
        if (n > 0) stream.append({&rows.ts[from], n}, {&rows.s[from], n}, {&rows.p[from], n}, {&rows.o[from], n});
        stream.close(batch);
    }

    std::string directory_;
    std::vector<Columns> streams_;
    Columns stored_;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
    using namespace penstock;
    const char* data = std::getenv("PENSTOCK_BENCH_LSBENCH");
    if (data == nullptr) return std::fprintf(stderr, "PENSTOCK_BENCH_LSBENCH names no directory\n"), 2;
    std::vector<std::unique_ptr<Bench>> benches;
    for (const int rate : {1, 20, 100}) {
        const auto directory = std::filesystem::temp_directory_path() / "penstock-standing-bench";
        benches.push_back(std::make_unique<Bench>(data, rate, directory.string()));
        for (const Query& query : queries())
            for (const auto& [part, name] :
                 {std::pair{Part::First, "first"}, {Part::Again, "again"}, {Part::Inject, "inject"}})
                benchmark::RegisterBenchmark(
                    (std::string(query.name) + "/x" + std::to_string(rate) + "/" + name).c_str(),
                    [bench = benches.back().get(), query, part](benchmark::State& state) {
                        bench->measure(state, query, part);
                    })
                    ->UseManualTime()
                    ->Unit(benchmark::kMicrosecond)
                    ->Iterations(rate >= 100 ? 20 : 60);
    }
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
