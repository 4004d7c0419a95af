// Answers that stand because every look-up gives what it gave: always those of a plan that has never run.
#include <array>
#include <memory>
#include <random>
#include <set>
#include <tuple>

#include "exec/remembered.hpp"
#include "exec_fixture.hpp"

namespace penstock::test {
namespace {

using exec::Remembered;

class StandingAnswer : public ExecTest {
protected:
    static constexpr std::size_t kSources = 3;
    using Triple = std::tuple<TermId, TermId, TermId>;

    /// A source of its own for each run, as views are.
    Table run_over(const Plan& plan, const Table& seed) {
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
        return plan.run(RunInput{&seed, sources, &labels, &context});
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

TEST_F(StandingAnswer, is_that_of_a_fresh_plan_while_sources_and_seeds_change) {
    const std::vector<Table> seeds{seed_table({0}, {{1}}), seed_table({0}, {{2}}), seed_table({0}, {{3}, {4}})};
    const Spec in = ids({0});
    const auto scan = [&](Spec from, Spec s, TermId p, Spec o, const Spec& dataset) {
        return n.scan(std::move(from), std::move(s), id(p), std::move(o), dataset);
    };
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
    };
    for (const Spec& root : roots) expect_answers_of_a_fresh_plan(n.plan(3, root, in), seeds);
}

TEST_F(StandingAnswer, is_none_before_a_label_has_come_into_being) {
    const Spec spec = n.plan(2, n.scan(n.seed(), var(0), id(90), var(1), all), ids({0}));
    const Plan standing(spec);
    const Table seed = seed_table({0}, {{1}});
    for (int i = 0; i < 5; ++i) EXPECT_EQ(run_over(standing, seed).rows, 0u);
    contents_[1].insert({1, 90, 2});
    EXPECT_EQ(rows_of(run_over(standing, seed)), (Rows{{1, 2}}));
}

TEST_F(StandingAnswer, is_kept_where_every_look_up_gives_the_same) {
    Remembered remembered;
    const Table seed = seed_table({0}, {{1}}), answer = seed_table({0, 1}, {{1, 2}});
    const Label label = labels.intern(0, 20);
    MemorySource source(labels);
    source.add(1, 20, 2);
    const std::vector<const Source*> sources{&source};
    const std::array<TermId, 1> keys{1};
    Matches found;
    source.expand(keys, label, Dir::Out, found);

    EXPECT_FALSE(remembered.same_seed(seed));
    EXPECT_TRUE(remembered.same_seed(seed));
    EXPECT_FALSE(remembered.holds(sources, 1));
    ASSERT_TRUE(remembered.begin());
    remembered.expanded(0, label, Dir::Out, keys, found);
    remembered.end(answer, 1);
    EXPECT_TRUE(remembered.holds(sources, 1));
    EXPECT_FALSE(remembered.holds(sources, 2)) << "labels of another table";
    EXPECT_EQ(rows_of(remembered.answer()), rows_of(answer));
    source.add(5, 20, 6);
    EXPECT_TRUE(remembered.holds(sources, 1)) << "of what is not looked up";
    source.add(1, 20, 3);
    EXPECT_FALSE(remembered.holds(sources, 1));
}

TEST_F(StandingAnswer, is_not_tried_for_while_look_ups_change_each_time) {
    Remembered remembered;
    const Table seed = seed_table({0}, {{1}});
    const Label label = labels.intern(0, 20);
    const std::array<TermId, 1> keys{1};
    int noted = 0;
    for (TermId run = 0; run < 200; ++run) {
        MemorySource source(labels);
        source.add(1, 20, 2 + run % 100);
        const std::vector<const Source*> sources{&source};
        ASSERT_EQ(remembered.same_seed(seed), run > 0);
        EXPECT_FALSE(remembered.holds(sources, 1));
        if (run == 0 || !remembered.begin()) continue;
        ++noted;
        Matches found;
        source.expand(keys, label, Dir::Out, found);
        remembered.expanded(0, label, Dir::Out, keys, found);
        remembered.end(seed, 1);
    }
    EXPECT_LT(noted, 20);
}

}  // namespace
}  // namespace penstock::test
