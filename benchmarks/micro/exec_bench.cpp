// Executions of small plans over a real store, and of grouped plans with many members. Google Benchmark; an item is a
// member, the counter `rows` is of one execution.
#include <benchmark/benchmark.h>

#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "exec/executor.hpp"
#include "store/store.hpp"

namespace penstock {
namespace {

using Dict = Spec::Dict;
using List = Spec::List;

Spec var(std::uint64_t slot) { return Dict{{"var", slot}}; }
Spec id(TermId term) { return Dict{{"id", term}}; }

class Bench {
public:
    Bench(const std::string& directory) : store_(directory, 1, std::size_t{1} << 30) {
        std::mt19937_64 random(1);
        std::vector<Edge> edges;
        for (TermId p : {kKnows, kLikes, kMade, kIn}) {
            Label label = store_.labels().intern(0, p);
            for (TermId s = 1; s <= kPeople; ++s)
                for (int n = p == kIn ? 1 : 3; n > 0; --n) edges.push_back({s, label, 1 + random() % kPeople});
        }
        store_.commit(edges, {});
        view_ = store_.view();
    }

    Spec seed() { return node("seed", {}); }
    Spec scan(Spec in, Spec s, Spec p, Spec o) {
        List stored{Dict{{"src", 0}, {"graphs", List{TermId{0}}}}};
        return node("scan", {{"in", in}, {"s", s}, {"p", p}, {"o", o}, {"dataset", stored}});
    }
    Spec node(const char* op, Dict members) {
        members.insert(members.begin(), {{"op", op}, {"id", static_cast<std::uint64_t>(next_++)}});
        return members;
    }

    void add(const std::string& name, const Spec& root, const std::vector<Slot>& slots, std::size_t members) {
        benchmark::RegisterBenchmark(
            (name + "/" + std::to_string(members)).c_str(),
            [this, root, slots, members](benchmark::State& state) { measure(state, root, slots, members); });
    }

    static constexpr TermId kPeople = 100000, kKnows = 1000001, kLikes = 1000002, kMade = 1000003, kIn = 1000004;

private:
    void measure(benchmark::State& state, const Spec& root, const std::vector<Slot>& slots, std::size_t members) {
        List seed_slots(slots.begin(), slots.end());
        const Plan plan(Dict{{"slots", 32}, {"seed", seed_slots}, {"root", root}, {"subplans", List{}}});
        Table seed;
        seed.slots = slots;
        seed.rows = members;
        seed.columns.resize(slots.size());
        for (std::size_t m = 0; m < members; ++m)
            for (std::size_t c = 0; c < slots.size(); ++c)
                seed.columns[c].push_back(c == 0 ? m : 1 + (m * 7919) % kPeople);
        Dictionary dictionary;
        const Source* source = view_.get();
        std::size_t rows = 0;
        for (auto _ : state) {
            LocalTerms terms(dictionary);
            Budget budget(60.0, std::size_t{1} << 30);
            ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
            RunInput input{&seed, {&source, 1}, &store_.labels(), &context, nullptr};
            rows += plan.run(input)->rows;
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * members));
        state.counters["rows"] = benchmark::Counter(static_cast<double>(rows), benchmark::Counter::kAvgIterations);
    }

    Store store_;
    std::unique_ptr<Source> view_;
    int next_ = 1;
};

void add_plans(Bench& b) {
    for (std::size_t members : {std::size_t{1}, std::size_t{100}, std::size_t{10000}}) {
        b.add("seed", b.seed(), {0, 1}, members);
        Spec one = b.scan(b.seed(), var(1), id(Bench::kIn), var(2));
        b.add("1 pattern", one, {0, 1}, members);
        Spec three = b.scan(b.scan(one, var(2), id(Bench::kIn), var(3)), var(3), id(Bench::kIn), var(4));
        b.add("3 patterns, one match each", three, {0, 1}, members);
        Spec wide =
            b.scan(b.scan(b.scan(b.seed(), var(1), id(Bench::kKnows), var(2)), var(2), id(Bench::kLikes), var(3)),
                   var(3), id(Bench::kMade), var(4));
        b.add("3 patterns, 27 rows", wide, {0, 1}, members);
        b.add("3 patterns, 27 rows, distinct",
              b.node("distinct", {{"in", b.node("project", {{"in", wide}, {"slots", List{Spec(0), Spec(3)}}})}}),
              {0, 1}, members);
        b.add("variable predicate", b.scan(b.seed(), var(1), var(3), var(2)), {0, 1}, members);
        Spec optional = b.node(
            "optional",
            {{"in", one}, {"inner", b.scan(b.node("outer", {}), var(2), id(Bench::kKnows), var(5))}, {"row", 6}});
        b.add("1 pattern, optional", optional, {0, 1}, members);
        Spec count = Dict{{"agg", "count_star"}, {"distinct", false}, {"out", 9}};
        b.add("3 patterns, 27 rows, count by member",
              b.node("group", {{"in", wide}, {"keys", List{Spec(0)}}, {"aggs", List{count}}, {"implicit", true}}),
              {0, 1}, members);
    }
    Spec all = b.scan(b.seed(), var(2), id(Bench::kIn), var(1));
    Spec edges =
        b.scan(b.node("values", {{"slots", List{}}, {"rows", List{Spec(List{})}}}), var(2), id(Bench::kIn), var(1));
    b.add("index scan of 100 K edges", edges, {}, 1);
    b.add("edges first, hash of the members", b.node("join", {{"left", edges}, {"right", b.seed()}}), {0, 1}, 10000);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
    const auto directory = std::filesystem::temp_directory_path() / "penstock-exec-bench";
    std::filesystem::remove_all(directory);
    std::filesystem::create_directories(directory);
    {
        penstock::Bench bench(directory.string());
        penstock::add_plans(bench);
        benchmark::Initialize(&argc, argv);
        benchmark::RunSpecifiedBenchmarks();
    }
    std::filesystem::remove_all(directory);
}
