// Both windows against brute force: random tuples in random order, duplicates, jumps, bounds anywhere, negative times.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <set>

#include "stream/event_time.hpp"
#include "stream/window.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

constexpr std::uint64_t kPredicates = 40;  // more than labels_of() probes one by one

using Edges = std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::int64_t>;  // s p o -> latest time

/// The look-ups of a case. A window indexes only what is looked up, so cases differ in it.
struct Asks {
    bool lookups[2], labels, edges;
    std::uint64_t predicates;
};

class Model {
public:
    Model(Fixture& fixture, const Window& window, Edges expected)
        : fixture_(fixture), window_(window), edges_(std::move(expected)) {}

    void check(const Asks& asks) {
        ASSERT_EQ(window_.size(), edges_.size());
        check_labels();
        for (std::uint64_t p = 1; p <= asks.predicates; ++p) {
            check_contains(p);
            if (asks.edges) check_edges(p);
            check_stats(p);
            for (int d = 0; d < 2; ++d) {
                if (asks.lookups[d]) check_direction(p, static_cast<Dir>(d));
            }
        }
        if (asks.labels) check_labels_of(Dir::Out), check_labels_of(Dir::In);
    }

private:
    using Lists = std::map<TermId, std::multiset<TermId>>;

    Lists lists(std::uint64_t predicate, Dir dir) const {
        Lists lists;
        for (const auto& [edge, ts] : edges_) {
            const auto [s, p, o] = edge;
            if (p != predicate) continue;
            lists[iri(dir == Dir::Out ? s : o)].insert(iri(dir == Dir::Out ? o : s));
        }
        return lists;
    }

    void check_labels() {
        std::vector<Label> found;
        window_.labels(found);
        std::set<Label> expected;
        for (const auto& [edge, ts] : edges_) expected.insert(fixture_.label(std::get<1>(edge)));
        EXPECT_EQ(std::set<Label>(found.begin(), found.end()), expected);
    }

    void check_contains(std::uint64_t predicate) {
        const Label label = fixture_.label(predicate);
        std::vector<TermId> subjects, objects;
        std::vector<std::uint8_t> expected;
        for (std::uint64_t s = 1; s <= 5; ++s) {
            for (std::uint64_t o = 1; o <= 12; ++o) {
                const auto edge = edges_.find({s, predicate, o});
                subjects.push_back(iri(s));
                objects.push_back(iri(o));
                expected.push_back(edge != edges_.end());
                EXPECT_EQ(window_.latest(iri(s), label, iri(o)), edge == edges_.end() ? kNever : edge->second);
            }
        }
        std::vector<std::uint8_t> found(expected.size());
        window_.contains(subjects, label, objects, found);
        EXPECT_EQ(found, expected);
    }

    void check_edges(std::uint64_t predicate) {
        std::vector<TermId> subjects, objects;
        window_.edges(fixture_.label(predicate), subjects, objects);
        Lists found;
        ASSERT_EQ(subjects.size(), objects.size());
        for (std::size_t i = 0; i < subjects.size(); ++i) found[subjects[i]].insert(objects[i]);
        EXPECT_EQ(found, lists(predicate, Dir::Out));
    }

    void check_stats(std::uint64_t predicate) {
        const LabelStats stats = window_.stats(fixture_.label(predicate));
        const Lists out = lists(predicate, Dir::Out);
        std::size_t edges = 0;
        for (const auto& [vertex, list] : out) edges += list.size();
        EXPECT_EQ(stats.edges, edges);
        EXPECT_EQ(stats.subjects == 0, out.empty());
        EXPECT_LE(stats.subjects, edges);
    }

    void check_direction(std::uint64_t predicate, Dir dir) {
        const Label label = fixture_.label(predicate);
        const Lists expected = lists(predicate, dir);
        std::vector<TermId> keys, vertices;
        for (std::uint64_t v = 0; v <= 40; ++v) keys.push_back(iri(v + 1));
        Matches matches;
        window_.expand(keys, label, dir, matches);
        EXPECT_TRUE(std::is_sorted(matches.rows.begin(), matches.rows.end()));
        Lists found;
        for (std::size_t i = 0; i < matches.rows.size(); ++i) found[keys[matches.rows[i]]].insert(matches.values[i]);
        EXPECT_EQ(found, expected);
        window_.vertices(label, dir, vertices);
        EXPECT_EQ(vertices.size(), expected.size());
        for (const TermId vertex : vertices) EXPECT_TRUE(expected.contains(vertex));
        for (const TermId key : keys) {
            const auto list = expected.find(key);
            EXPECT_EQ(window_.degree(key, label, dir), list == expected.end() ? 0 : list->second.size());
        }
        const LabelStats stats = window_.stats(label);
        EXPECT_EQ(dir == Dir::Out ? stats.subjects : stats.objects, expected.size());
    }

    void check_labels_of(Dir dir) {
        std::vector<TermId> keys;
        for (std::uint64_t v = 0; v <= 40; ++v) keys.push_back(iri(v + 1));
        std::vector<std::uint32_t> rows;
        std::vector<Label> labels;
        window_.labels_of(keys, dir, rows, labels);
        std::set<std::pair<TermId, Label>> found, expected;
        for (std::size_t i = 0; i < rows.size(); ++i) found.insert({keys[rows[i]], labels[i]});
        EXPECT_EQ(found.size(), rows.size());
        for (const auto& [edge, ts] : edges_) {
            const auto [s, p, o] = edge;
            expected.insert({iri(dir == Dir::Out ? s : o), fixture_.label(p)});
        }
        EXPECT_EQ(found, expected);
    }

    Fixture& fixture_;
    const Window& window_;
    Edges edges_;
};

/// Lists of one label and direction as an occasional reader knows them: those that the window does not
/// report as possibly changed are the same.
class LastLookups {
public:
    void check(const Window& window, Label label, Dir dir) {
        std::vector<TermId> keys;
        for (std::uint64_t v = 0; v <= 40; ++v) keys.push_back(iri(v + 1));
        std::vector<std::uint32_t> changed;
        const bool known = version_ != 0 && window.changed_since(version_, keys, label, dir, changed);
        std::vector<std::vector<TermId>> lists(keys.size());
        Matches matches;
        window.expand(keys, label, dir, matches);
        for (std::size_t i = 0; i < matches.rows.size(); ++i) lists[matches.rows[i]].push_back(matches.values[i]);
        for (std::uint32_t key = 0; known && key < keys.size(); ++key) {
            if (!std::binary_search(changed.begin(), changed.end(), key)) EXPECT_EQ(lists[key], lists_[key]);
        }
        lists_ = std::move(lists);
        version_ = window.version();
    }

private:
    std::uint64_t version_ = 0;
    std::vector<std::vector<TermId>> lists_;
};

/// One random stream, its tuples in the order (event time, arrival).
struct Case {
    std::mt19937_64 random;
    Fixture fixture;
    std::int64_t batch_ms;
    Stream stream;
    std::vector<Tuple> tuples;
    std::int64_t now;
    std::uint64_t predicates, spread;
    Asks asks;
    LastLookups last_lookups[2];

    explicit Case(std::uint64_t seed)
        : random(seed),
          batch_ms(below(2) ? 1 + below(20) : 100),
          stream(fixture.store, fixture.dictionary, Fixture::timing(batch_ms)) {
        now = -static_cast<std::int64_t>(below(2000));
        predicates = below(3) ? 1 + below(3) : kPredicates;
        spread = 2 + below(38);  // small: many duplicates and hubs
        asks = {{below(2) == 0, below(2) == 0}, below(2) == 0, below(2) == 0, predicates};
        stream.close(batch_of(now, batch_ms));
    }

    std::uint64_t below(std::uint64_t n) { return random() % n; }

    /// A few batches' tuples, appended in random order, and closed.
    void feed() {
        const std::int64_t closed = stream.closed();
        const std::int64_t span = below(20) == 0 ? 100'000 : 1 + static_cast<std::int64_t>(below(3 * batch_ms));
        std::vector<Tuple> fresh;
        const std::size_t count = below(4) == 0 ? 0 : below(below(4) ? 30 : 300);
        for (std::size_t i = 0; i < count; ++i) {
            const std::int64_t ts = (closed + 1) * batch_ms + 1 + static_cast<std::int64_t>(below(span));
            fresh.push_back({ts, 1 + below(spread), 1 + below(predicates), 1 + below(spread)});
        }
        if (!fresh.empty()) append(stream, fresh);
        for (const Tuple& tuple : fresh) tuples.push_back(tuple);
        std::stable_sort(tuples.begin(), tuples.end(), [](const Tuple& a, const Tuple& b) { return a.ts < b.ts; });
        stream.close(batch_of((closed + 1) * batch_ms + span, batch_ms));
    }
    std::int64_t end() const { return (stream.closed() + 1) * batch_ms; }

    void check(const Window& window, Edges expected) {
        if (below(3) == 0) return;
        for (int d = 0; d < 2; ++d)
            if (asks.lookups[d]) last_lookups[d].check(window, fixture.label(1), static_cast<Dir>(d));
        Model(fixture, window, std::move(expected)).check(asks);
    }

    static void put(Edges& edges, const Tuple& t) { edges[{t.s, t.p, t.o}] = t.ts; }
};

void run_time_window(std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c(seed);
    TimeWindow window(c.stream);
    std::int64_t start = c.now - 1000, end = c.now - 1000;
    const std::int64_t range = 1 + static_cast<std::int64_t>(c.below(1000));
    for (int step = 0; step < 25 && !::testing::Test::HasFailure(); ++step) {
        c.feed();
        end = std::max(end, c.end() - static_cast<std::int64_t>(c.below(2 * c.batch_ms)));
        start = std::max(start, end - static_cast<std::int64_t>(c.below(3) ? range : c.below(range + 1)));
        window.advance(start, end);
        if (c.below(2)) c.stream.release(batch_of(start, c.batch_ms) - (start % c.batch_ms == 0 ? 0 : 1));
        Edges expected;
        for (const Tuple& tuple : c.tuples) {
            if (tuple.ts > start && tuple.ts <= end) Case::put(expected, tuple);
        }
        c.check(window, std::move(expected));
    }
}

std::vector<CountWindow::Report> brute_reports(const std::vector<Tuple>& counted, std::size_t from,
                                               std::uint64_t step) {
    std::vector<CountWindow::Report> reports;
    for (std::size_t i = from; i < counted.size(); ++i) {
        if ((i + 1) % step != 0) continue;
        if (!reports.empty() && reports.back().time == counted[i].ts) reports.pop_back();
        reports.push_back({counted[i].ts, i + 1});
    }
    return reports;
}

void run_count_window(std::uint64_t seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Case c(seed);
    const std::int64_t after = c.now + static_cast<std::int64_t>(c.below(3 * c.batch_ms));
    const std::uint64_t size = 1 + c.below(c.below(2) ? 10 : 400), step = 1 + c.below(c.below(2) ? 5 : 500);
    auto window = std::make_unique<CountWindow>(c.stream, size, step, after);
    std::size_t counted_before = 0;
    for (int round = 0; round < 25 && !::testing::Test::HasFailure(); ++round) {
        c.feed();
        std::vector<Tuple> counted;
        for (const Tuple& tuple : c.tuples) {
            if (tuple.ts > after) counted.push_back(tuple);
        }
        const auto reports = window->take(c.stream.closed());
        ASSERT_EQ(reports, brute_reports(counted, counted_before, step));
        counted_before = counted.size();
        for (const auto& report : reports) {
            if (c.below(4) == 0) continue;  // an evaluation is never skipped, but the window need not know
            window->advance(report.position);
            Edges expected;
            const std::size_t first = report.position > size ? report.position - size : 0;
            for (std::size_t i = first; i < report.position; ++i) Case::put(expected, counted[i]);
            ASSERT_EQ(window->bounds(), std::pair(counted[first].ts - 1, counted[report.position - 1].ts));
            c.check(*window, std::move(expected));
        }
        c.stream.release(window->oldest_batch() - 1);
        if (c.below(4) == 0) {
            const std::size_t held = window->size();
            const auto bounds = window->bounds();
            const std::string saved = window->save();
            window = std::make_unique<CountWindow>(c.stream, size, step, after);
            window->restore(saved);
            ASSERT_EQ(window->size(), held);
            ASSERT_EQ(window->bounds(), bounds);
        }
    }
}

std::uint64_t cases() { return std::getenv("PENSTOCK_LONG") != nullptr ? 2000 : 30; }

TEST(WindowModel, a_time_window_equals_brute_force) {
    for (std::uint64_t seed = 1; seed <= cases() && !HasFailure(); ++seed) run_time_window(seed);
}

TEST(WindowModel, a_count_window_equals_brute_force) {
    for (std::uint64_t seed = 1; seed <= cases() && !HasFailure(); ++seed) run_count_window(seed);
}

}  // namespace
}  // namespace penstock
