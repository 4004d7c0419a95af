// Terms: parsing, interning, decoding. Usage: terms_bench [FILE.nt]; without a file, triples like those of a sensor
// platform are made up. Best of five, CPU time of one thread.
#include <ctime>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "rdf/ntriples.hpp"

using namespace penstock;

namespace {

/// CPU time of this thread: the machine may be busy with other things.
double cpu_seconds() {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double best_seconds(const std::function<void()>& prepare, const std::function<void()>& work) {
    double best = 1e9;
    for (int i = 0; i < 5; ++i) {
        prepare();
        const double begin = cpu_seconds();
        work();
        best = std::min(best, cpu_seconds() - begin);
    }
    return best;
}

/// A million triples: subjects in runs of five, 40 predicates, objects half IRIs and half literals of all kinds.
std::string made_up() {
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

void report(const char* what, double seconds, double count, const char* unit) {
    std::printf("%-46s %8.1f ns/%s\n", what, seconds * 1e9 / count, unit);
}

void interning(const std::vector<std::string>& texts) {
    const auto n = static_cast<double>(texts.size());
    std::vector<TermView> terms;
    for (const std::string& text : texts) terms.push_back({Kind::Iri, text, {}, {}});
    std::vector<TermId> ids(terms.size());
    std::unique_ptr<Dictionary> d;
    report("intern, new, in batches",
           best_seconds([&] { d = std::make_unique<Dictionary>(); }, [&] { d->intern(terms, ids.data()); }), n, "term");
    report("intern, known, in batches", best_seconds([] {}, [&] { d->intern(terms, ids.data()); }), n, "term");
    std::vector<std::uint32_t> order(terms.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), std::mt19937_64(2));
    std::vector<TermView> shuffled;
    for (const std::uint32_t i : order) shuffled.push_back(terms[i]);
    report("intern, known, random order, in batches", best_seconds([] {}, [&] { d->intern(shuffled, ids.data()); }), n,
           "term");
    report("intern, known, random order, one by one",
           best_seconds([] {},
                        [&] {
                            for (const TermView& t : shuffled) d->intern(t);
                        }),
           n, "term");
    report("find, random order",
           best_seconds([] {},
                        [&] {
                            for (const TermView& t : shuffled) d->find(t);
                        }),
           n, "term");
    std::string scratch;
    std::size_t bytes = 0;
    report("view, random order",
           best_seconds([] {},
                        [&] {
                            for (const TermId id : ids) bytes += d->view(id, scratch).lexical.size();
                        }),
           n, "term");
    std::printf("%-46s %8.1f bytes/term (texts %.1f)\n", "memory", static_cast<double>(d->bytes()) / n,
                static_cast<double>(bytes) / 5 / n);
    const double made = best_seconds([] {},
                                     [&] {
                                         for (int i = 0; i < 100; ++i) Dictionary().fresh_blank();
                                     });
    report("an empty dictionary, made and dropped", made, 100, "dictionary");
}

}  // namespace

int main(int argc, char** argv) {
    std::string document;
    if (argc > 1) {
        std::ifstream file(argv[1], std::ios::binary);
        document.assign(std::istreambuf_iterator<char>(file), {});
    } else {
        document = made_up();
    }
    std::unique_ptr<Dictionary> d;
    QuadColumns columns;
    const auto parse = [&] {
        BlankScope scope;
        columns = parse_nquads(*d, document, {}, scope);
    };
    const double fresh = best_seconds([&] { d = std::make_unique<Dictionary>(); }, parse);
    const double again = best_seconds([] {}, parse);
    const auto rows = static_cast<double>(columns.subjects.size());
    const double megabytes = static_cast<double>(document.size()) / 1e6;
    std::printf("%.0f triples, %.0f MB, %zu dictionary terms\n", rows, megabytes, d->size());
    report("parse and intern, new terms", fresh, rows, "triple");
    std::printf("%-46s %8.1f MB/s, %.2f M triples/s\n", "", megabytes / fresh, rows / fresh / 1e6);
    report("parse and intern, known terms", again, rows, "triple");
    std::printf("%-46s %8.1f MB/s, %.2f M triples/s\n", "", megabytes / again, rows / again / 1e6);

    std::vector<std::string> texts;
    for (int i = 0; i < 2'000'000; ++i) texts.push_back("http://www.example.org/things/number" + std::to_string(i));
    interning(texts);
    return 0;
}
