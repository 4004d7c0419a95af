// Terms: parsing, interning, decoding. Google Benchmark; an item is a triple, or a term. PENSTOCK_BENCH_NT names an
// N-Triples file to parse; without it, triples like those of a sensor platform are generated.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "rdf/ntriples.hpp"

namespace penstock {
namespace {

constexpr std::size_t kTerms = 2'000'000;

/// A million triples: subjects in runs of five, 40 predicates, objects half IRIs and half literals of all kinds.
std::string generated() {
    std::mt19937_64 random(1);
    std::string out;
    for (int i = 0; i < 1'000'000; ++i) {
        out += "<http://www.example.org/observations/sensor" + std::to_string(i / 5) +
               "> <http://purl.org/ns/property" + std::to_string(random() % 40) + "> ";
        switch (random() % 6) {
            case 0:
                out += "\"" + std::to_string(random() % 100'000) + ".25\"^^<http://www.w3.org/2001/XMLSchema#double>";
                break;
            case 1:
                out += "\"2014-08-01T07:" + std::to_string(10 + random() % 50) +
                       ":00\"^^<http://www.w3.org/2001/XMLSchema#dateTime>";
                break;
            case 2:
                out += "\"a comment numbered " + std::to_string(random() % 300'000) + "\"@en";
                break;
            default:
                out += "<http://www.example.org/things/" + std::to_string(random() % 200'000) + ">";
        }
        out += " .\n";
    }
    return out;
}

const std::string& document() {
    static const std::string text = [] {
        const char* path = std::getenv("PENSTOCK_BENCH_NT");
        if (path == nullptr) return generated();
        std::ifstream file(path, std::ios::binary);
        return std::string(std::istreambuf_iterator<char>(file), {});
    }();
    return text;
}

/// `known`: the dictionary has the document's terms already.
void parse(benchmark::State& state, bool known) {
    auto dictionary = std::make_unique<Dictionary>();
    QuadColumns columns;
    const auto run = [&] {
        BlankScope scope;
        columns = parse_nquads(*dictionary, document(), {}, scope);
    };
    if (known) run();
    for (auto _ : state) {
        if (!known) {
            state.PauseTiming();
            dictionary = std::make_unique<Dictionary>();
            state.ResumeTiming();
        }
        run();
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * columns.subjects.size()));
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * document().size()));
}

/// Two million IRIs in a dictionary: `terms` in order of their ids, `shuffled` in random order.
struct Names {
    std::vector<std::string> texts;
    std::vector<TermView> terms, shuffled;
    std::vector<TermId> ids;
    Dictionary dictionary;

    static Names& all() {
        static Names names;
        return names;
    }

private:
    Names() : ids(kTerms) {
        for (std::size_t i = 0; i < kTerms; ++i)
            texts.push_back("http://www.example.org/things/number" + std::to_string(i));
        for (const std::string& text : texts) terms.push_back({Kind::Iri, text, {}, {}});
        shuffled = terms;
        std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(2));
        dictionary.intern(terms, ids.data());
    }
};

void count_terms(benchmark::State& state) {
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations() * kTerms));
}

void intern_new_in_batch(benchmark::State& state) {
    Names& names = Names::all();
    std::vector<TermId> ids(kTerms);
    std::unique_ptr<Dictionary> dictionary;
    for (auto _ : state) {
        state.PauseTiming();
        dictionary = std::make_unique<Dictionary>();
        state.ResumeTiming();
        dictionary->intern(names.terms, ids.data());
    }
    count_terms(state);
    state.counters["bytes_per_term"] = static_cast<double>(dictionary->bytes()) / static_cast<double>(kTerms);
}

void intern_known_in_batch(benchmark::State& state, bool shuffled) {
    Names& names = Names::all();
    std::vector<TermId> ids(kTerms);
    for (auto _ : state) names.dictionary.intern(shuffled ? names.shuffled : names.terms, ids.data());
    count_terms(state);
}

void intern_known_one_by_one(benchmark::State& state) {
    Names& names = Names::all();
    for (auto _ : state)
        for (const TermView& term : names.shuffled) names.dictionary.intern(term);
    count_terms(state);
}

void find_one_by_one(benchmark::State& state) {
    Names& names = Names::all();
    for (auto _ : state)
        for (const TermView& term : names.shuffled) benchmark::DoNotOptimize(names.dictionary.find(term));
    count_terms(state);
}

void view_one_by_one(benchmark::State& state) {
    Names& names = Names::all();
    std::string scratch;
    for (auto _ : state)
        for (const TermId id : names.ids) benchmark::DoNotOptimize(names.dictionary.view(id, scratch).lexical.size());
    count_terms(state);
}

/// A dictionary, made and dropped.
void empty_dictionary(benchmark::State& state) {
    for (auto _ : state) Dictionary().fresh_blank();
}

BENCHMARK_CAPTURE(parse, new_terms, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(parse, known_terms, true)->Unit(benchmark::kMillisecond);
BENCHMARK(intern_new_in_batch)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(intern_known_in_batch, in_order, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(intern_known_in_batch, shuffled, true)->Unit(benchmark::kMillisecond);
BENCHMARK(intern_known_one_by_one)->Unit(benchmark::kMillisecond);
BENCHMARK(find_one_by_one)->Unit(benchmark::kMillisecond);
BENCHMARK(view_one_by_one)->Unit(benchmark::kMillisecond);
BENCHMARK(empty_dictionary);

}  // namespace
}  // namespace penstock

BENCHMARK_MAIN();
