// What a row costs in expressions and aggregates: filters on inline numbers and names, arithmetic, functions on
// strings, sums. Google Benchmark; an item is a row.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "expr/expression.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock {
namespace {

constexpr std::size_t kRows = 4096;  // a morsel of the executor

Spec var(int slot) { return Spec::Dict{{"var", Spec(slot)}}; }
Spec constant(TermId id) { return Spec::Dict{{"id", Spec(static_cast<std::uint64_t>(id))}}; }
Spec call(const char* name, Spec::List arguments) {
    return Spec::Dict{{"call", Spec(name)}, {"args", Spec(std::move(arguments))}};
}

class Bench {
public:
    Bench() {
        std::mt19937_64 random(1);
        char text[32];
        const std::string xsd(kXsd);
        rows_.rows = kRows;
        for (Slot slot = 0; slot < 6; ++slot) rows_.slots.push_back(slot);
        rows_.columns.resize(6);
        for (std::size_t i = 0; i < kRows; ++i) {
            std::snprintf(text, sizeof text, "%.2f", static_cast<double>(random() % 10'000) / 100);
            rows_.columns[0].push_back(encode_inline(text, xsd + "double", {}));
            rows_.columns[1].push_back(make_integer(static_cast<std::int64_t>(random() % 1000)));
            rows_.columns[2].push_back(iri(random() % 500));
            rows_.columns[3].push_back(iri(random() % 500));
            rows_.columns[4].push_back(encode_inline(text, xsd + "decimal", {}));
            const std::string name = "a sensor's longer name " + std::to_string(random() % 500);
            rows_.columns[5].push_back(dictionary_.intern({Kind::Literal, name, kXsdString, {}}));
        }
    }

    void test(benchmark::State& state, const Spec& spec) {
        const auto expression = Expression::compile(spec);
        std::vector<std::uint8_t> keep;
        for (auto _ : state) expression->test(rows_, context_, keep);
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
    }
    void evaluate(benchmark::State& state, const Spec& spec) {
        const auto expression = Expression::compile(spec);
        Column out;
        for (auto _ : state) expression->evaluate(rows_, context_, out);
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
    }
    /// Over 64 groups.
    void aggregate(benchmark::State& state, const char* name, int slot) {
        const auto aggregate = Aggregate::compile(Spec::Dict{{"agg", Spec(name)}, {"expr", var(slot)}});
        const std::size_t groups = 64;
        std::vector<std::uint32_t> group_of(kRows);
        for (std::size_t i = 0; i < kRows; ++i) group_of[i] = static_cast<std::uint32_t>(i % groups);
        Column out;
        for (auto _ : state) {
            aggregate->reset(groups);
            aggregate->add(rows_, group_of, {}, context_);
            aggregate->finish(context_, out);
        }
        state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kRows));
    }

    TermId iri(std::uint64_t number) {
        const std::string text = "http://example.org/sensor/" + std::to_string(number);
        return dictionary_.intern({Kind::Iri, text, {}, {}});
    }

private:
    Dictionary dictionary_;
    LocalTerms local_{dictionary_};
    Budget budget_;
    ExprContext context_{local_, budget_};
    Table rows_;
};

void add_filters(Bench& bench) {
    const auto add = [&bench](const char* what, const Spec& spec) {
        benchmark::RegisterBenchmark(what, [&bench, spec](benchmark::State& state) { bench.test(state, spec); });
    };
    const TermId half = encode_inline("50", std::string(kXsd) + "integer", {});
    add("?double > 50", call(">", {var(0), constant(half)}));
    add("?integer >= 500", call(">=", {var(1), constant(make_integer(500))}));
    add("?iri = ?iri", call("=", {var(2), var(3)}));
    add("?iri = <iri>", call("=", {var(2), constant(bench.iri(7))}));
    add("?decimal < 50.0", call("<", {var(4), constant(make_decimal({500, 1}))}));
    add("?double > 50 && ?integer < 100",
        call("and", {call(">", {var(0), constant(half)}), call("<", {var(1), constant(make_integer(100))})}));
    add("contains(?name, '42')", call("contains", {var(5), constant(make_short_string("42"))}));
    add("regex(?name, '42$')", call("regex", {var(5), constant(make_short_string("42$"))}));
}

void add_values(Bench& bench) {
    const auto add = [&bench](const char* what, const Spec& spec) {
        benchmark::RegisterBenchmark(what, [&bench, spec](benchmark::State& state) { bench.evaluate(state, spec); });
    };
    add("?integer * 2 + 1", call("+", {call("*", {var(1), constant(make_integer(2))}), constant(make_integer(1))}));
    add("?decimal + 0.5", call("+", {var(4), constant(make_decimal({5, 1}))}));
    add("?double * 1.8 + 32",
        call("+", {call("*", {var(0), constant(make_decimal({18, 1}))}), constant(make_integer(32))}));
    add("?integer / 3", call("/", {var(1), constant(make_integer(3))}));
    add("round(?double)", call("round", {var(0)}));
    add("str(?iri)", call("str", {var(2)}));
    add("substr(?name, 24)", call("substr", {var(5), constant(make_integer(24))}));
}

void add_aggregates(Bench& bench) {
    const auto add = [&bench](const std::string& name, const char* type, int slot) {
        benchmark::RegisterBenchmark((name + "(?" + type + ")").c_str(), [&bench, name, slot](benchmark::State& state) {
            bench.aggregate(state, name.c_str(), slot);
        });
    };
    for (const char* name : {"count", "sum", "avg", "max"}) {
        add(name, "integer", 1);
        add(name, "decimal", 4);
        add(name, "double", 0);
    }
    add("max", "name", 5);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
    penstock::Bench bench;
    penstock::add_filters(bench);
    penstock::add_values(bench);
    penstock::add_aggregates(bench);
    benchmark::Initialize(&argc, argv);
    benchmark::RunSpecifiedBenchmarks();
}
