// The stored graph: bulk commit, small commits, look-ups with hot and with cold caches, memory a triple. Build with
// -DPENSTOCK_BENCH=ON. Arguments: [TRIPLES.ids] as encode_triples.py writes them; without, a synthetic social graph.
// Prints one JSON object.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
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

/// Processor time of this thread, so that a busy machine distorts less; reading it costs a system call.
struct Clock {
    using duration = std::chrono::nanoseconds;
    using time_point = std::chrono::time_point<Clock>;
    static time_point now() {
        timespec t{};
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
        return time_point(std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec));
    }
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

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

class Bench {
public:
    explicit Bench(Triples triples) : triples_(std::move(triples)) {
        char name[] = "/dev/shm/penstock-bench-XXXXXX";
        directory_ = mkdtemp(name);
    }
    ~Bench() {
        store_.reset();
        std::filesystem::remove_all(directory_);
    }

    void run() {
        load();
        look_up();
        append();
    }

private:
    std::vector<Edge> edges(std::size_t begin, std::size_t end) {
        std::vector<Edge> edges;
        for (std::size_t i = begin; i < end; ++i)
            edges.push_back({triples_.s[i], store_->labels().intern(0, triples_.p[i]), triples_.o[i]});
        return edges;
    }
    void fresh() {
        store_.reset();
        store_ = std::make_unique<Store>(directory_, 1, std::size_t{1} << 36);
    }

    void load() {
        double best = 1e9;
        for (int round = 0; round < 3; ++round) {
            fresh();
            const auto all = edges(0, triples_.size());
            const auto start = Clock::now();
            store_->commit(all, {});
            best = std::min(best, seconds_since(start));
        }
        const auto stored = static_cast<double>(store_->edge_count());
        std::printf("{\"triples\": %.0f, \"bulk_triples_per_s\": %.0f, \"bytes_per_triple\": %.1f", stored,
                    static_cast<double>(triples_.size()) / best, static_cast<double>(store_->used_bytes()) / stored);
    }

    /// Nanoseconds a key of the whole batch, in calls of `group` keys.
    template <class Call>
    double per_key(std::size_t n, std::size_t group, Call call) {
        const auto start = Clock::now();
        for (std::size_t at = 0; at + group <= n; at += group) call(at, group);
        return seconds_since(start) * 1e9 / static_cast<double>(n / group * group);
    }

    void look_up() {
        const auto view = store_->view();
        std::mt19937_64 random(2);
        // Keys of one label each call, as the executor asks; the label with the most subjects.
        Label label = 1;
        for (Label l = 1; l <= store_->labels().size(); ++l)
            if (view->stats(l).subjects > view->stats(label).subjects) label = l;
        std::vector<TermId> keys;
        view->vertices(label, Dir::Out, keys);
        std::shuffle(keys.begin(), keys.end(), random);
        std::vector<TermId> few(keys.begin(),
                                keys.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(1000, keys.size())));
        std::vector<TermId> hot;
        while (hot.size() < 200000) hot.insert(hot.end(), few.begin(), few.end());

        Matches matches;
        const auto expand = [&](const std::vector<TermId>& of) {
            return [&, span = std::span(of)](std::size_t at, std::size_t n) {
                matches.clear();
                view->expand(span.subspan(at, n), label, Dir::Out, matches);
            };
        };
        std::vector<TermId> objects(hot.size());
        view->expand(hot, label, Dir::Out, matches);
        for (std::size_t i = matches.rows.size(); i > 0; --i) objects[matches.rows[i - 1]] = matches.values[i - 1];
        std::vector<std::uint8_t> found(hot.size());
        const auto contains = [&](std::size_t at, std::size_t n) {
            view->contains(std::span(hot).subspan(at, n), label, std::span(objects).subspan(at, n),
                           std::span(found).subspan(at, n));
        };
        const auto degree = [&](std::size_t at, std::size_t) { sink_ += view->degree(hot[at], label, Dir::Out); };
        const auto flush = [&] {
            if (flusher_.empty()) flusher_.resize(std::size_t{256} << 20);
            for (std::size_t i = 0; i < flusher_.size(); i += 64) flusher_[i]++;
        };
        std::printf(
            ", \"hot_ns\": {\"expand_1\": %.0f, \"expand_16\": %.0f, \"expand_1024\": %.0f, \"contains_1024\": %.0f, "
            "\"degree\": %.0f}",
            per_key(hot.size(), 1, expand(hot)), per_key(hot.size(), 16, expand(hot)),
            per_key(hot.size(), 1024, expand(hot)), per_key(hot.size(), 1024, contains),
            per_key(hot.size(), 1, degree));
        flush();
        const std::size_t cold = std::min<std::size_t>(keys.size(), 20000) & ~std::size_t{1023};
        const double one = per_key(cold, 1, expand(keys));
        flush();
        std::printf(", \"cold_ns\": {\"expand_1\": %.0f, \"expand_1024\": %.0f}", one,
                    per_key(cold, 1024, expand(keys)));
        const auto start = Clock::now();
        constexpr int kViews = 100000;
        for (int i = 0; i < kViews; ++i) store_->view();
        std::printf(", \"view_ns\": %.0f", seconds_since(start) * 1e9 / kViews);
    }

    void append() {
        fresh();
        const std::size_t base = triples_.size() / 2;
        store_->commit(edges(0, base), {});
        for (const std::size_t batch : {10, 100, 1000}) {
            std::vector<double> times;
            const std::size_t first = base + base / 4 * (batch == 10 ? 0 : batch == 100 ? 1 : 2);
            std::int64_t number = 0;
            for (std::size_t at = first;
                 at + batch <= std::min(first + base / 4, triples_.size()) && times.size() < 20000; at += batch) {
                const auto some = edges(at, at + batch);
                const auto start = Clock::now();
                store_->commit(some, {1, ++number});
                times.push_back(seconds_since(start) * 1e9 / static_cast<double>(batch));
                store_->release(1, number);
            }
            std::sort(times.begin(), times.end());
            double total = 0;
            for (double t : times) total += t;
            std::printf(", \"append_%zu_ns\": {\"p50\": %.0f, \"p99\": %.0f, \"max\": %.0f, \"mean\": %.0f}", batch,
                        times[times.size() / 2], times[times.size() * 99 / 100], times.back(),
                        total / static_cast<double>(times.size()));
        }
        fresh();
        for (std::size_t at = 0; at < triples_.size(); at += 1000)
            store_->commit(edges(at, std::min(at + 1000, triples_.size())), {});
        std::printf(", \"bytes_per_triple_appended\": %.1f, \"writer_bytes\": %llu}\n",
                    static_cast<double>(store_->used_bytes()) / static_cast<double>(store_->edge_count()),
                    static_cast<unsigned long long>(store_->index_bytes()));
    }

    Triples triples_;
    std::string directory_;
    std::unique_ptr<Store> store_;
    std::vector<char> flusher_;
    std::uint64_t sink_ = 0;
};

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
    penstock::Bench(argc > 1 ? penstock::read_triples(argv[1]) : penstock::make_triples(2000000)).run();
}
