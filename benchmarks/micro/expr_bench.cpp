// What a row costs in expressions and aggregates, ns: filters on inline numbers and names, arithmetic, functions on
// strings, sums. Build with -DPENSTOCK_BENCH=ON; no arguments.
#include <algorithm>
#include <chrono>
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
constexpr int kRounds = 200;

Spec var(int slot) { return Spec::Dict{{"var", Spec(slot)}}; }
Spec constant(TermId id) { return Spec::Dict{{"id", Spec(static_cast<std::uint64_t>(id))}}; }
Spec call(const char* name, Spec::List arguments) {
    return Spec::Dict{{"call", Spec(name)}, {"args", Spec(std::move(arguments))}};
}

/// Median over rounds, since the machine is shared.
template <class F>
double per_row(const F& f) {
    std::vector<double> times;
    for (int round = 0; round < kRounds; ++round) {
        const auto start = std::chrono::steady_clock::now();
        f();
        times.push_back(std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count());
    }
    std::nth_element(times.begin(), times.begin() + kRounds / 2, times.end());
    return times[kRounds / 2] / kRows;
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

    void filters() {
        const TermId half = encode_inline("50", std::string(kXsd) + "integer", {});
        test("?double > 50", call(">", {var(0), constant(half)}));
        test("?integer >= 500", call(">=", {var(1), constant(make_integer(500))}));
        test("?iri = ?iri", call("=", {var(2), var(3)}));
        test("?iri = <iri>", call("=", {var(2), constant(iri(7))}));
        test("?decimal < 50.0", call("<", {var(4), constant(make_decimal({500, 1}))}));
        test("?double > 50 && ?integer < 100",
             call("and", {call(">", {var(0), constant(half)}), call("<", {var(1), constant(make_integer(100))})}));
        test("contains(?name, \"42\")", call("contains", {var(5), constant(make_short_string("42"))}));
        test("regex(?name, \"42$\")", call("regex", {var(5), constant(make_short_string("42$"))}));
    }

    void values() {
        evaluate("?integer * 2 + 1",
                 call("+", {call("*", {var(1), constant(make_integer(2))}), constant(make_integer(1))}));
        evaluate("?decimal + 0.5", call("+", {var(4), constant(make_decimal({5, 1}))}));
        evaluate("?double * 1.8 + 32",
                 call("+", {call("*", {var(0), constant(make_decimal({18, 1}))}), constant(make_integer(32))}));
        evaluate("?integer / 3", call("/", {var(1), constant(make_integer(3))}));
        evaluate("round(?double)", call("round", {var(0)}));
        evaluate("str(?iri)", call("str", {var(2)}));
        evaluate("substr(?name, 24)", call("substr", {var(5), constant(make_integer(24))}));
    }

    void aggregates() {
        for (const char* name : {"count", "sum", "avg", "max"}) {
            aggregate(name, "integer", 1);
            aggregate(name, "decimal", 4);
            aggregate(name, "double", 0);
        }
        aggregate("max", "name", 5);
    }

private:
    TermId iri(std::uint64_t number) {
        const std::string text = "http://example.org/sensor/" + std::to_string(number);
        return dictionary_.intern({Kind::Iri, text, {}, {}});
    }
    static void report(const char* what, double nanoseconds) { std::printf("%-36s %8.1f\n", what, nanoseconds); }

    void test(const char* what, const Spec& spec) {
        const auto expression = Expression::compile(spec);
        std::vector<std::uint8_t> keep;
        report(what, per_row([&] { expression->test(rows_, context_, keep); }));
    }
    void evaluate(const char* what, const Spec& spec) {
        const auto expression = Expression::compile(spec);
        Column out;
        report(what, per_row([&] { expression->evaluate(rows_, context_, out); }));
    }
    void aggregate(const char* name, const char* type, int slot) {
        const auto state = Aggregate::compile(Spec::Dict{{"agg", Spec(name)}, {"expr", var(slot)}});
        const std::size_t groups = 64;
        std::vector<std::uint32_t> group_of(kRows);
        for (std::size_t i = 0; i < kRows; ++i) group_of[i] = static_cast<std::uint32_t>(i % groups);
        Column out;
        const double time = per_row([&] {
            state->reset(groups);
            state->add(rows_, group_of, {}, context_);
            state->finish(context_, out);
        });
        report((std::string(name) + "(?" + type + "), 64 groups").c_str(), time);
    }

    Dictionary dictionary_;
    LocalTerms local_{dictionary_};
    Budget budget_;
    ExprContext context_{local_, budget_};
    Table rows_;
};

}  // namespace
}  // namespace penstock

int main() {
    std::printf("%-36s %8s\n", "", "ns/row");
    penstock::Bench bench;
    bench.filters();
    bench.values();
    bench.aggregates();
}
