// Forks: steps that run on nodes. The nodes of these tests are memory sources, each with the edges of its own vertices.
#include "exec/forking.hpp"

#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

/// Vertices belong to nodes by their number. Runs fragments as nodes do: a plan over their own edges.
class FakeNodes final : public exec::Forker {
public:
    static constexpr std::size_t kNodes = 3;
    FakeNodes(LabelTable& labels, const Dictionary& dictionary, const Spec& fragment)
        : labels_(labels), dictionary_(dictionary), fragment_(fragment), edges_(kNodes, MemorySource(labels)) {}

    void add(TermId s, TermId p, TermId o, TermId graph) { edges_[s % kNodes].add(s, p, o, graph); }
    std::size_t nodes() const override { return kNodes; }
    std::size_t node_of(TermId vertex) const override { return vertex % kNodes; }
    std::vector<Table> run(std::uint32_t, std::vector<Table> rows, const Budget&) override {
        ++forks;
        std::vector<Table> found;
        for (std::size_t node = 0; node < kNodes; ++node) {
            shipped += rows[node].rows;
            found.push_back(rows[node].rows == 0 ? Table() : run_at(edges_[node], rows[node]));
        }
        if (spoil) spoil(found);
        return found;
    }

    std::size_t forks = 0, shipped = 0;
    std::function<void(std::vector<Table>&)> spoil;

private:
    Table run_at(const MemorySource& edges, const Table& rows) {
        LocalTerms terms(dictionary_);
        Budget budget(30.0, 0);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        const std::vector<const Source*> sources{&edges};
        return *fragment_.run(RunInput{&rows, sources, &labels_, &context, nullptr, nullptr});
    }
    LabelTable& labels_;
    const Dictionary& dictionary_;
    Plan fragment_;
    std::vector<MemorySource> edges_;
};

constexpr std::uint64_t kX = 0, kY = 1, kZ = 2, kRow = 3;
constexpr TermId kNext = 120, kName = 121;

class Fork : public ExecTest {
protected:
    void add(TermId s, TermId p, TermId o, TermId graph = 0) {
        graph_.add(s, p, o, graph);
        nodes.add(s, p, o, graph);
    }
    Spec steps(Spec in) {
        return n.scan(n.scan(in, var(kX), id(kNext), var(kY), both), var(kX), id(kName), var(kZ), both);
    }
    Spec fork(std::uint64_t least) {
        return n.node("fork", {{"in", n.seed()},
                               {"inner", steps(n.node("outer"))},
                               {"row", kRow},
                               {"key", kX},
                               {"uses", ids({kX})},
                               {"least", least}});
    }
    Rows rows_by(const Spec& root, const Table& seed, exec::Forker* forker) {
        LocalTerms terms(dictionary);
        Budget budget(30.0, memory_limit);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        const std::vector<const Source*> sources{&graph_};
        const Plan plan(n.plan(4, n.node("project", {{"in", root}, {"slots", ids({kX, kY, kZ})}}), ids({kX})));
        return rows_of(*plan.run(RunInput{&seed, sources, &labels, &context, nullptr, forker}));
    }
    static Table starting_from(std::size_t rows) {
        Rows keys;
        for (std::size_t i = 0; i < rows; ++i) keys.push_back({1 + i * 7 % 100});
        return seed_table({kX}, keys);
    }

    Spec both = List{stored({0, 100})};
    MemorySource graph_{labels};
    FakeNodes nodes{
        labels, dictionary,
        n.plan(4, n.node("project", {{"in", steps(n.seed())}, {"slots", ids({kRow, kZ, kY})}}), ids({kRow, kX}))};
};

TEST_F(Fork, gives_the_rows_that_its_steps_give_in_place_in_the_order_of_its_input) {
    for (TermId v = 1; v <= 100; ++v)
        for (TermId w = 1; w <= v % 4; ++w) {
            add(v, kNext, w, w % 2 == 0 ? 100 : 0);
            add(v, kName, v + w);
        }
    for (const std::size_t rows : {1, 10, 1000, 5000}) {
        const Table seed = starting_from(rows);
        Rows here = rows_by(fork(1), seed, nullptr), there = rows_by(fork(1), seed, &nodes);
        std::vector<TermId> keys_here, keys_there;  // in place a step gives its rows graph by graph within a morsel
        for (const auto& row : there) keys_there.push_back(row[0]);
        for (const TermId key : seed.columns[0]) keys_here.insert(keys_here.end(), (key % 4) * (key % 4), key);
        EXPECT_EQ(keys_there, keys_here);
        std::sort(here.begin(), here.end());
        std::sort(there.begin(), there.end());
        EXPECT_EQ(there, here);
        EXPECT_EQ(std::exchange(nodes.shipped, 0), rows);
    }
}

TEST_F(Fork, stays_in_place_where_the_rows_are_fewer_than_it_takes) {
    add(1, kNext, 2);
    add(1, kName, 3);
    EXPECT_EQ(rows_by(fork(51), starting_from(50), &nodes), (Rows{{1, 2, 3}}));
    EXPECT_EQ(nodes.forks, 0u);
    EXPECT_EQ(rows_by(fork(50), starting_from(50), &nodes), (Rows{{1, 2, 3}}));
    EXPECT_EQ(nodes.forks, 1u);
}

TEST_F(Fork, collects_more_and_more_rows_and_all_are_shipped_once) {
    const std::size_t rows = 20'000;
    rows_by(fork(1), starting_from(rows), &nodes);
    EXPECT_EQ(nodes.shipped, rows);
    EXPECT_EQ(nodes.forks, 3u);  // 1,024, 16,384, and the rest
}

TEST_F(Fork, does_not_believe_a_node_that_sends_back_something_else) {
    for (TermId v = 1; v <= 100; ++v) {
        add(v, kNext, v);
        add(v, kName, v);
    }
    const std::vector<std::function<void(std::vector<Table>&)>> spoils = {
        [](auto& found) { found.pop_back(); },
        [](auto& found) { found[0].slots[0] = 17; },
        [](auto& found) { found[1].columns[2].pop_back(); },
        [](auto& found) { found[1].columns[0][0] = 4'000'000; },
        [](auto& found) { std::swap(found[0], found[1]); },
    };
    for (const auto& spoil : spoils) {
        nodes.spoil = spoil;
        EXPECT_THROW(rows_by(fork(1), starting_from(9), &nodes), Error);
    }
}

TEST_F(Fork, charges_what_it_collects_and_what_comes_back) {
    for (TermId v = 1; v <= 100; ++v)
        for (TermId w = 1; w <= 30; ++w) {
            add(v, kNext, w);
            add(v, kName, w);
        }
    memory_limit = 1 << 20;
    EXPECT_THROW(rows_by(fork(1), starting_from(1000), &nodes), LimitError);
}

TEST_F(Fork, requires_its_key_in_its_input) {
    const Spec root = n.node("fork", {{"in", n.seed()},
                                      {"inner", steps(n.node("outer"))},
                                      {"row", kRow},
                                      {"key", kY},
                                      {"uses", ids({kX})},
                                      {"least", 1}});
    EXPECT_THROW(Plan(n.plan(4, root, ids({kX}))), Error);
}

}  // namespace
}  // namespace penstock::test
