// Unchanged results: reused if every look-up gives its former rows, and equal to those of a plan that has never run.
#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <tuple>

#include "exec/dataset.hpp"
#include "exec/lookup_memo.hpp"
#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

using exec::LookupMemo;

using Triple = std::tuple<TermId, TermId, TermId>;

class UnchangedResult : public ExecTest {
protected:
    static constexpr std::size_t kSources = 3;

    /// A source of its own for each run, as views are.
    Table run_over(const Plan& plan, const Table& seed, Profile* profile = nullptr) {
        std::vector<std::unique_ptr<MemorySource>> made;
        std::vector<const Source*> sources;
        for (const auto& content : contents_) {
            made.push_back(std::make_unique<MemorySource>(labels));
            for (auto [s, p, o] : content) made.back()->add(s, p, o);
            sources.push_back(made.back().get());
        }
        LocalTerms terms(dictionary);
        Budget budget(30.0, 0);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        return *plan.run(RunInput{&seed, sources, &labels, &context, profile});
    }
    /// One or no change of one source: few runs change anything.
    void change() {
        auto& content = contents_[random_() % kSources];
        const Triple triple{1 + random_() % 5, 20 + random_() % 4, 1 + random_() % 5};
        if (random_() % 3 != 0) return;
        if (!content.erase(triple)) content.insert(triple);
    }
    void expect_answers_of_a_fresh_plan(const Spec& spec, const std::vector<Table>& seeds) {
        const Plan standing(spec);
        std::size_t seed = 0;
        for (int step = 0; step < 500; ++step) {
            change();
            if (random_() % 40 == 0) seed = random_() % seeds.size();
            ASSERT_EQ(rows_of(run_over(standing, seeds[seed])), rows_of(run_over(Plan(spec), seeds[seed])))
                << "step " << step << " of " << show(spec);
        }
    }
    std::array<std::set<Triple>, kSources> contents_;
    std::mt19937 random_{7};
    Spec all = List{stored({0}), Dict{{"src", 1}}, Dict{{"src", 2}}};
    Spec first = List{Dict{{"src", 1}}}, second = List{Dict{{"src", 2}}};
};

TEST_F(UnchangedResult, a_reused_result_has_the_rows_of_its_run) {
    const Plan plan(n.plan(2, n.scan(n.seed(), var(0), id(20), var(1), all), ids({0})));
    const Table seed = seed_table({0}, {{1}});
    Profile profile;
    const auto counted = [&] {
        run_over(plan, seed, &profile);
        return profile.rows.back().value;
    };
    contents_[1] = {{1, 20, 2}, {1, 20, 3}};
    for (int i = 0; i < 3; ++i) EXPECT_EQ(counted(), 2u);
    EXPECT_TRUE(profile.reused);
    contents_[1].insert({1, 20, 4});
    profile.timed = true;  // this run is not memoized
    EXPECT_EQ(counted(), 3u);
    EXPECT_FALSE(profile.reused);
    contents_[1].erase({1, 20, 4});
    EXPECT_EQ(counted(), 2u);
    EXPECT_TRUE(profile.reused);
}

TEST_F(UnchangedResult, is_that_of_a_fresh_plan_while_sources_and_seeds_change) {
    const std::vector<Table> seeds{seed_table({0}, {{1}}), seed_table({0}, {{2}}), seed_table({0}, {{3}, {4}})};
    const Spec in = ids({0});
    const auto scan = [&](Spec from, Spec s, TermId p, Spec o, const Spec& dataset) {
        return n.scan(std::move(from), std::move(s), id(p), std::move(o), dataset);
    };
    const Spec alternatives = Dict{{"any", List{id(21), Dict{{"id", 22}, {"inverse", true}}}}};
    const Spec either = n.node("union", {{"inputs", List{scan(n.node("outer"), var(1), 20, var(0), first),
                                                         scan(n.node("outer"), var(0), 21, var(1), second)}}});
    const std::vector<Spec> roots = {
        scan(n.seed(), var(0), 20, var(1), all),
        n.scan(n.seed(), var(0), var(1), var(2), all),
        n.scan(n.seed(), var(1), var(2), var(0), first),
        scan(scan(n.seed(), var(0), 20, var(1), List{stored({0})}), var(1), 21, var(2), first),
        scan(scan(n.seed(), var(0), 20, var(1), first), var(1), 22, var(0), second),
        scan(scan(n.seed(), var(0), 20, var(1), first), var(1), 22, var(0), all),
        scan(scan(n.seed(), var(1), 20, var(2), first), var(2), 21, var(0), second),
        n.node("distinct",
               {{"in", n.node("project", {{"in", scan(n.seed(), var(0), 23, var(1), all)}, {"slots", ids({0})}})}}),
        n.node("join", {{"left", scan(n.seed(), var(0), 20, var(1), first)},
                        {"right", scan(n.seed(), var(2), 21, var(0), second)}}),
        n.node("minus", {{"left", scan(n.seed(), var(0), 20, var(1), first)},
                         {"right", scan(n.seed(), var(0), 21, var(1), second)},
                         {"ignore", ids({0})}}),
        n.scan(n.seed(), var(0), alternatives, var(1), all),
        n.scan(scan(n.seed(), var(0), 20, var(1), first), var(1), alternatives, var(0), second),
        n.scan(n.scan(n.seed(), var(0), id(20), var(1), first), var(1), id(21), Dict{{"any", ids({2, 3})}}, second),
        n.scan(n.scan(n.seed(), var(0), id(20), var(1), first), Dict{{"any", List{}}}, id(21), var(1), all),
        n.node("semijoin", {{"in", scan(n.seed(), var(0), 23, var(1), first)}, {"inner", either}, {"row", 2}}),
    };
    for (const Spec& root : roots) expect_answers_of_a_fresh_plan(n.plan(3, root, in), seeds);
}

TEST_F(UnchangedResult, is_none_before_a_label_has_come_into_being) {
    const Spec spec = n.plan(2, n.scan(n.seed(), var(0), id(90), var(1), all), ids({0}));
    const Plan standing(spec);
    const Table seed = seed_table({0}, {{1}});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(run_over(standing, seed).rows, 0u);
    contents_[1].insert({1, 90, 2});
    EXPECT_EQ(rows_of(run_over(standing, seed)), (Rows{{1, 2}}));
}

TEST_F(UnchangedResult, is_reused_if_every_look_up_gives_the_same) {
    LookupMemo lookup_memo;
    const Table seed = seed_table({0}, {{1}}), answer = seed_table({0, 1}, {{1, 2}});
    const Label label = labels.intern(0, 20);
    MemorySource source(labels);
    source.add(1, 20, 2);
    const std::vector<const Source*> sources{&source};
    const std::array<TermId, 1> keys{1};
    Matches found;
    source.expand(keys, label, Dir::Out, found);

    EXPECT_FALSE(lookup_memo.same_seed(seed));
    EXPECT_TRUE(lookup_memo.same_seed(seed));
    EXPECT_FALSE(lookup_memo.still_valid(sources, 1));
    ASSERT_TRUE(lookup_memo.begin());
    lookup_memo.expanded({&source, label, 0, 20, 0}, Dir::Out, keys, found);
    lookup_memo.end(std::make_shared<Table>(answer), 1);
    EXPECT_TRUE(lookup_memo.still_valid(sources, 1));
    EXPECT_FALSE(lookup_memo.still_valid(sources, 2)) << "labels of another table";
    EXPECT_EQ(rows_of(*lookup_memo.answer()), rows_of(answer));
    source.add(5, 20, 6);
    EXPECT_TRUE(lookup_memo.still_valid(sources, 1)) << "of what is not looked up";
    source.add(1, 20, 3);
    EXPECT_FALSE(lookup_memo.still_valid(sources, 1));
}

/// A source that knows what its last version added.
class KnownSource final : public Source {
public:
    explicit KnownSource(LabelTable& labels) : labels_(labels), held_(std::in_place, labels) {}
    void add(TermId s, TermId p, TermId o) {
        held_->add(s, p, o);
        changed_.insert(s);
        changed_.insert(o);
    }
    void next_version() {
        ++version_;
        changed_.clear();
    }
    /// The next version: other triples than those before, and of their ends, others are reported as changed, too.
    void next_version(const std::set<Triple>& before, const std::set<Triple>& triples, TermId mistaken) {
        next_version();
        changed_.insert(mistaken);
        std::vector<Triple> different;
        std::ranges::set_symmetric_difference(before, triples, std::back_inserter(different));
        for (const auto& [s, p, o] : different) changed_.insert({s, o});
        held_.emplace(labels_);
        for (const auto& [s, p, o] : triples) held_->add(s, p, o);
    }
    std::uint64_t version() const override { return version_; }
    bool changed_since(std::uint64_t version, std::span<const TermId> keys, Label, Dir,
                       std::vector<std::uint32_t>& rows) const override {
        if (version + 1 < version_) return false;
        for (std::uint32_t i = 0; version != version_ && i < keys.size(); ++i)
            if (changed_.contains(keys[i])) rows.push_back(i);
        return true;
    }
    void expand(std::span<const TermId> keys, Label label, Dir dir, Matches& out) const override {
        asked += keys.size();
        held_->expand(keys, label, dir, out);
    }
    void contains(std::span<const TermId> subjects, Label label, std::span<const TermId> objects,
                  std::span<std::uint8_t> found) const override {
        held_->contains(subjects, label, objects, found);
    }
    void vertices(Label label, Dir dir, std::vector<TermId>& out) const override { held_->vertices(label, dir, out); }
    void labels_of(std::span<const TermId> keys, Dir dir, std::vector<std::uint32_t>& rows,
                   std::vector<Label>& labels) const override {
        held_->labels_of(keys, dir, rows, labels);
    }
    void edges(Label label, std::vector<TermId>& subjects, std::vector<TermId>& objects) const override {
        held_->edges(label, subjects, objects);
    }
    void labels(std::vector<Label>& out) const override { held_->labels(out); }
    LabelStats stats(Label label) const override { return held_->stats(label); }
    std::uint64_t degree(TermId vertex, Label label, Dir dir) const override {
        return held_->degree(vertex, label, dir);
    }
    mutable std::size_t asked = 0;  // keys

private:
    LabelTable& labels_;
    std::optional<MemorySource> held_;
    std::set<TermId> changed_;
    std::uint64_t version_ = 1;
};

TEST_F(UnchangedResult, asks_a_source_that_knows_what_has_changed_for_nothing_else) {
    for (TermId o = 30; o < 70; ++o) graph.add(1, 20, o);
    KnownSource window(labels);
    for (TermId s = 30; s < 60; ++s) window.add(s, 21, s + 50);
    const Spec spec =
        n.plan(3, n.scan(n.scan(n.seed(), var(0), id(20), var(1), List{stored({0})}), var(1), id(21), var(2), first),
               ids({0}));
    const Plan standing(spec);
    const Table seed = seed_table({0}, {{1}});
    const auto rows = [&](const Plan& plan) {
        window.asked = 0;
        LocalTerms terms(dictionary);
        Budget budget(30.0, 0);
        ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
        const std::vector<const Source*> sources{&graph, &window};
        return rows_of(*plan.run(RunInput{&seed, sources, &labels, &context}));
    };
    const auto expect_keys_asked = [&](std::size_t keys) {
        const Rows found = rows(standing);
        EXPECT_EQ(window.asked, keys);
        EXPECT_EQ(found, rows(Plan(spec)));
    };
    expect_keys_asked(40);  // the first run records a seed
    expect_keys_asked(40);  // and the second what it looks up
    expect_keys_asked(0);
    window.next_version();
    expect_keys_asked(0);
    window.next_version();
    window.add(35, 21, 100);
    expect_keys_asked(1);
    window.next_version();
    window.add(69, 21, 101);
    window.add(30, 21, 102);
    expect_keys_asked(2);
    window.next_version();
    window.next_version();
    expect_keys_asked(40);  // no longer known
    window.next_version();
    for (TermId s = 40; s < 60; ++s) window.add(s, 21, 103);
    expect_keys_asked(40);  // too many
}

TEST_F(UnchangedResult, is_patched_where_a_source_knows_what_has_changed) {
    const auto scan = [&](Spec from, Spec s, TermId p, Spec o, const Spec& dataset) {
        return n.scan(std::move(from), std::move(s), id(p), std::move(o), dataset);
    };
    const Spec friends = scan(n.seed(), var(0), 20, var(1), List{stored({0})});
    const Spec posts = scan(friends, var(1), 21, var(2), first);
    const std::vector<Spec> roots = {
        posts,
        scan(posts, var(2), 22, var(3), first),
        scan(scan(friends, var(1), 22, var(0), first), var(2), 21, var(1), first),
        scan(friends, var(1), 21, var(2), all),
        n.scan(friends, var(1), var(3), var(2), first),
    };
    const Table seed = seed_table({0}, {{1}});
    for (const Spec& root : roots) {
        const Spec spec = n.plan(4, root, ids({0}));
        const Plan standing(spec);
        KnownSource window(labels);
        std::set<Triple> content, friends_of;
        for (int step = 0; step < 2'000; ++step) {
            if (step == 0 || random_() % 50 == 0) {
                friends_of.clear();
                for (int i = 0; i < 30; ++i) friends_of.insert({1, 20, 30 + random_() % 40});
            }
            MemorySource graph(labels), other(labels);
            for (const auto& [s, p, o] : friends_of) graph.add(s, p, o);
            other.add(31, 21, 99);
            std::set<Triple> next = content;
            for (auto changes = random_() % 3; changes != 0; --changes) {
                const TermId p = 21 + random_() % 2;
                const Triple triple{(p == 21 ? 30 : 100) + random_() % 40, p, (p == 21 ? 100 : 1) + random_() % 40};
                if (!next.erase(triple)) next.insert(triple);
            }
            for (std::size_t most = 60; next.size() > most;) next.erase(std::next(next.begin(), random_() % most));
            window.next_version(content, next, 30 + random_() % 40);
            content = next;
            if (random_() % 20 == 0) window.next_version(content, content, 0);  // one that the plan did not see
            const auto rows = [&](const Plan& plan) {
                LocalTerms terms(dictionary);
                Budget budget(30.0, 0);
                ExprContext context{terms, budget, 0, {}, {}, 0, {}, {}, {}};
                const std::vector<const Source*> sources{&graph, &window, &other};
                return rows_of(*plan.run(RunInput{&seed, sources, &labels, &context}));
            };
            ASSERT_EQ(rows(standing), rows(Plan(spec))) << "step " << step << " of " << show(root);
        }
    }
}

TEST_F(UnchangedResult, is_not_tried_for_while_look_ups_change_each_time) {
    LookupMemo lookup_memo;
    const Table seed = seed_table({0}, {{1}});
    const Label label = labels.intern(0, 20);
    const std::array<TermId, 1> keys{1};
    int noted = 0;
    for (TermId run = 0; run < 200; ++run) {
        MemorySource source(labels);
        source.add(1, 20, 2 + run % 100);
        const std::vector<const Source*> sources{&source};
        ASSERT_EQ(lookup_memo.same_seed(seed), run > 0);
        EXPECT_FALSE(lookup_memo.still_valid(sources, 1));
        if (run == 0 || !lookup_memo.begin()) continue;
        ++noted;
        Matches found;
        source.expand(keys, label, Dir::Out, found);
        lookup_memo.expanded({&source, label, 0, 20, 0}, Dir::Out, keys, found);
        lookup_memo.end(std::make_shared<Table>(seed), 1);
    }
    EXPECT_LT(noted, 20);
}

}  // namespace
}  // namespace penstock::test
