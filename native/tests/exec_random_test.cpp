// Random graphs and random plans: the executor agrees with a row-at-a-time evaluator of the same plan.
#include <random>

#include "exec_fixture.hpp"
#include "exec_oracle.hpp"

namespace penstock::test {
namespace {

/// A node under construction with what the planner would know about it.
struct Draft {
    Spec node;
    std::set<std::uint64_t> slots;
    std::set<std::uint64_t> bound;  // in every row
};

class Generator {
public:
    explicit Generator(std::uint64_t number) : random_(number) {}

    std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
    bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
    TermId resource() { return 1 + below(6); }
    TermId predicate() { return below(8) == 0 ? resource() : 10 + below(3); }

    std::vector<std::vector<Oracle::Quad>> data() {
        std::vector<std::vector<Oracle::Quad>> sources(3);
        for (std::size_t i = 0; i < sources.size(); ++i)
            for (std::size_t n = below(i == 0 ? 25 : 10); n > 0; --n)
                sources[i].push_back(
                    {resource(), predicate(), below(6) == 0 ? predicate() : resource(), i == 0 ? graph() : 0});
        return sources;
    }

    Spec plan(bool with_seed) {
        with_seed_ = with_seed;
        Draft root = draft(1 + below(4), nullptr);
        if (chance(15)) root = group(root);
        if (chance(25)) root.node = n_.node("distinct", {{"in", root.node}});
        return n_.plan(kSlots, root.node, with_seed ? ids({kMember, 0}) : Spec(List{}), subplans_);
    }

    Solutions seed_rows() {
        Solutions rows;
        for (std::size_t i = 0, n = 1 + below(5); i < n; ++i) rows.push_back({{kMember, i + 1}, {0, resource()}});
        return rows;
    }
    /// Slots of row numbers, which depend on the order of rows.
    const std::set<std::uint64_t>& row_slots() const { return row_slots_; }
    static constexpr std::uint64_t kVariables = 6, kMember = 6, kSlots = 200;

private:
    TermId graph() { return std::array<TermId, 3>{0, 100, 101}[below(3)]; }
    std::uint64_t variable() { return below(kVariables); }
    std::uint64_t fresh() { return next_slot_++; }

    Spec term(const Draft& in, int variable_percent = 75) {
        if (chance(variable_percent))
            for (int tries = 0; tries < 20; ++tries) {
                std::uint64_t slot = variable();
                if (!in.slots.count(slot) || in.bound.count(slot)) return var(slot);
            }
        return id(resource());
    }
    void bind(Draft& draft, const Spec& term) {
        if (const Spec* slot = term.find("var")) bind(draft, slot->as_int());
    }
    void bind(Draft& draft, std::uint64_t slot) {
        draft.slots.insert(slot);
        draft.bound.insert(slot);
    }

    /// Parts for a pattern; with `named` such that a graph variable can range over them.
    Spec dataset(bool named) {
        List parts;
        if (named) {
            parts.push_back(chance(50) ? Spec(Dict{{"src", 0}, {"graphs", "named"}}) : stored({100, 101}));
            if (chance(40)) parts.push_back(Dict{{"src", 1}, {"name", 102}});
            if (chance(20)) parts.push_back(Dict{{"src", 2}, {"name", 100}});
            return parts;
        }
        if (chance(80)) parts.push_back(chance(60) ? stored({0}) : stored({0, 100}));
        if (parts.empty() || chance(30)) parts.push_back(Dict{{"src", 1}});
        if (chance(20)) parts.push_back(Dict{{"src", 2}});
        if (chance(10)) parts.push_back(Dict{{"src", 0}, {"graphs", "named"}});
        return parts;
    }

    Dict pattern(const Draft& in, int graph) {
        Dict members{{"in", in.node}, {"dataset", dataset(graph >= 0)}};
        if (graph >= 0) members.emplace_back("graph", static_cast<std::uint64_t>(graph));
        return members;
    }
    int graph_slot(const Draft& in) {
        if (!chance(25)) return -1;
        std::uint64_t slot = variable();
        return in.slots.count(slot) && !in.bound.count(slot) ? -1 : static_cast<int>(slot);
    }

    Draft scan(Draft in, bool projected = false) {
        int graph = graph_slot(in);
        Dict members = pattern(in, graph);
        Spec s = term(in), o = term(in), p = chance(25) ? term(in) : id(predicate());
        if (graph < 0 && chance(20))
            p = Dict{{"any", alternatives()}};
        else if (chance(20))
            (chance(50) ? s : o) = Dict{{"any", List{}}};
        if (s.find("any") != nullptr) s = any_end(in, o);
        if (o.find("any") != nullptr) o = any_end(in, s);
        members.insert(members.end(), {{"s", s}, {"p", p}, {"o", o}});
        for (const Spec& t : {s, p, o}) bind(in, t);
        if (graph >= 0) bind(in, static_cast<std::uint64_t>(graph));
        if (projected) members.emplace_back("keep", some_slots(in));
        in.node = n_.node("scan", members);
        return in;
    }

    /// An end that is omitted. Without values if the other end may be free.
    Spec any_end(const Draft& in, const Spec& other) {
        List values;
        const Spec* slot = other.find("var");
        const bool bound = slot == nullptr || in.bound.count(slot->as_int());
        while (bound && chance(60)) values.emplace_back(resource());
        return Dict{{"any", values}};
    }

    List alternatives() {
        List any;
        do any.push_back(Dict{{"id", predicate()}, {"inverse", chance(40)}});
        while (chance(60));
        return any;
    }

    /// Removes the other slots from the draft.
    Spec some_slots(Draft& in) {
        List slots;
        for (std::uint64_t slot = 0; slot <= kMember; ++slot) {
            if (chance(70))
                slots.emplace_back(slot);
            else
                in.slots.erase(slot), in.bound.erase(slot);
        }
        for (std::uint64_t slot = kMember + 1; slot < next_slot_; ++slot) slots.emplace_back(slot);
        return slots;
    }

    Draft path(Draft in) {
        int graph = graph_slot(in);
        Dict members = pattern(in, graph);
        Spec s = term(in), o = term(in);
        // A slot of the seed is a term, any other a variable; the plan must declare it if both ends are variables.
        auto is_variable = [&](const Spec& t) {
            return t.find("var") != nullptr && !(with_seed_ && t.at("var").as_int() == 0);
        };
        if (is_variable(s) != is_variable(o) && (is_bound(in, s) || is_bound(in, o)))
            (is_variable(s) ? s : o) = id(resource());
        bool variables = is_variable(s) && is_variable(o);
        members.insert(members.end(), {{"s", s}, {"path", expression_of_path(3)}, {"o", o}, {"nodes_only", variables}});
        for (const Spec& t : {s, o}) bind(in, t);
        if (graph >= 0) bind(in, static_cast<std::uint64_t>(graph));
        in.node = n_.node("path", members);
        return in;
    }
    static bool is_bound(const Draft& in, const Spec& t) {
        return t.find("var") != nullptr && in.bound.count(t.at("var").as_int());
    }
    Spec expression_of_path(int depth) {
        Spec link = Dict{{"link", predicate()}};
        if (depth == 0) return link;
        auto part = [&] { return expression_of_path(depth - 1); };
        auto some = [&] { return chance(70) ? Spec(List{ids({predicate()})}).as_list()[0] : ids({}); };
        switch (below(8)) {
            case 0:
                return Dict{{"inv", part()}};
            case 1:
                return Dict{{"seq", List{part(), part()}}};
            case 2:
                return Dict{{"alt", List{part(), part()}}};
            case 3:
                return Dict{{"star", part()}};
            case 4:
                return Dict{{"plus", part()}};
            case 5:
                return Dict{{"opt", part()}};
            case 6:
                return chance(40)   ? Dict{{"nps", some()}, {"inv", Spec()}}
                       : chance(50) ? Dict{{"nps", Spec()}, {"inv", some()}}
                                    : Dict{{"nps", some()}, {"inv", some()}};
            default:
                return link;
        }
    }

    Spec condition(const Draft& rows, int depth) {
        auto any = [&] { return chance(75) ? var(variable()) : id(resource()); };
        switch (below(depth > 0 ? 7 : 3)) {
            case 0:
                return Dict{{"call", "bound"}, {"args", List{var(variable())}}};
            case 1:
            case 2:
                return Dict{{"call", "="}, {"args", List{any(), any()}}};
            case 3:
                return Dict{{"call", "not"}, {"args", List{condition(rows, depth - 1)}}};
            case 4:
                return Dict{{"call", "and"}, {"args", List{condition(rows, depth - 1), condition(rows, depth - 1)}}};
            case 5:
                return Dict{{"call", "or"}, {"args", List{condition(rows, depth - 1), condition(rows, depth - 1)}}};
            default:
                return exists(rows);
        }
    }
    Spec exists(const Draft& rows) {
        std::uint64_t row = fresh();
        Draft inner = correlated(rows, row);
        subplans_.push_back(Dict{{"node", inner.node}, {"row", row}});
        return Dict{{"exists", subplans_.size() - 1}, {"not", chance(50)}};
    }

    /// Something that starts from outer rows and keeps their number.
    Draft correlated(const Draft& outer, std::uint64_t row) {
        Draft inner = outer;
        inner.node = n_.node("outer");
        bind(inner, row);
        for (std::size_t steps = 1 + below(2); steps > 0; --steps) inner = step(inner, 0, &outer);
        return inner;
    }

    Draft leaf(const Draft* outer) {
        Draft made;
        if (outer == nullptr && chance(15)) {
            List slots, rows;
            for (std::uint64_t slot = 0; slot < kVariables; ++slot)
                if (chance(40)) {
                    slots.emplace_back(slot);
                    made.slots.insert(slot);
                }
            for (std::size_t i = below(5); i > 0; --i) {
                List cells;
                for (std::size_t c = 0; c < slots.size(); ++c) cells.emplace_back(chance(75) ? resource() : TermId{0});
                rows.emplace_back(cells);
            }
            made.node = n_.node("values", {{"slots", slots}, {"rows", rows}});
            return made;
        }
        made.node = n_.node("seed");
        if (with_seed_) {
            bind(made, kMember);
            bind(made, 0);
        }
        return made;
    }

    Draft draft(std::size_t depth, const Draft* outer) {
        Draft made = leaf(outer);
        for (std::size_t steps = 1 + below(3); steps > 0; --steps) made = step(made, depth, outer);
        return made;
    }

    /// One more operator on top.
    Draft step(Draft in, std::size_t depth, const Draft* outer) {
        switch (below(depth > 0 ? 16 : 5)) {
            case 0:
            case 1:
            case 2:
                return scan(in);
            case 3:
                return path(in);
            case 4:
                in.node = n_.node("filter", {{"in", in.node}, {"expr", condition(in, outer == nullptr ? 2 : 0)}});
                return in;
            case 5: {
                std::uint64_t slot = fresh();
                in.node = n_.node("extend", {{"in", in.node}, {"slot", slot}, {"expr", var(variable())}});
                in.slots.insert(slot);
                return in;
            }
            case 6:
                return two_sided("join", in, draft(depth - 1, outer));
            case 7:
                return two_sided("leftjoin", in, draft(depth - 1, outer));
            case 8:
                return two_sided("minus", in, draft(depth - 1, outer));
            case 9:
                return two_sided("union", in, draft(depth - 1, outer));
            case 10:
                return nested("optional", in);
            case 11:
                return nested("lateral", in);
            case 12:
                return nested("semijoin", in);
            case 13:
                return graphs(in);
            case 14:
                return project(in);
            default:
                return scan(in, true);
        }
    }

    Draft two_sided(const std::string& op, const Draft& left, const Draft& right) {
        Dict members{{"left", left.node}, {"right", right.node}};
        Draft made = left;
        if (op == "union") members = {{"inputs", List{left.node, right.node}}};
        if (op == "minus") {
            List ignore;
            for (std::uint64_t slot : {kMember, std::uint64_t{0}})
                if (left.bound.count(slot) && right.bound.count(slot) && chance(70)) ignore.emplace_back(slot);
            members.emplace_back("ignore", ignore);
        } else {
            made.slots.insert(right.slots.begin(), right.slots.end());
        }
        if (op == "join") made.bound.insert(right.bound.begin(), right.bound.end());
        if (op == "union") {
            made.bound.clear();
            std::set_intersection(left.bound.begin(), left.bound.end(), right.bound.begin(), right.bound.end(),
                                  std::inserter(made.bound, made.bound.end()));
        }
        if (op == "leftjoin" && chance(50)) members.emplace_back("expr", condition(made, 1));
        made.node = n_.node(op.c_str(), members);
        return made;
    }

    Draft nested(const std::string& op, const Draft& in) {
        std::uint64_t row = fresh();
        row_slots_.insert(row);
        Draft inner = correlated(in, row);
        Dict members{{"in", in.node}, {"inner", inner.node}, {"row", row}};
        Draft made = in;
        if (op == "semijoin")
            members.emplace_back("anti", chance(50));
        else
            made.slots.insert(inner.slots.begin(), inner.slots.end());
        if (op == "lateral") made.bound = inner.bound;
        if (op == "optional") {
            made.slots.erase(row);
            if (chance(40)) members.emplace_back("expr", condition(made, 1));
        }
        made.node = n_.node(op.c_str(), members);
        return made;
    }

    Draft graphs(Draft in) {
        std::uint64_t slot = variable();
        if (in.slots.count(slot) && !in.bound.count(slot)) return in;
        bind(in, slot);
        in.node = n_.node("graphs", {{"in", in.node}, {"graph", slot}, {"dataset", dataset(true)}});
        return in;
    }

    Draft project(const Draft& in) {
        Draft made;
        List slots;
        for (std::uint64_t slot = 0; slot <= kMember; ++slot)
            if (chance(70)) {
                slots.emplace_back(slot);
                made.slots.insert(slot);
                if (in.bound.count(slot)) made.bound.insert(slot);
            }
        made.node = n_.node("project", {{"in", in.node}, {"slots", slots}});
        return made;
    }

    Draft group(const Draft& in) {
        List keys;
        for (std::uint64_t slot = 0; slot < kVariables; ++slot)
            if (in.slots.count(slot) && chance(40)) keys.emplace_back(slot);
        bool implicit = chance(40);
        if (implicit) keys = with_seed_ && in.bound.count(kMember) ? List{kMember} : List{};
        if (implicit && keys.empty() && with_seed_) implicit = false;
        List aggregates{Dict{{"agg", "count_star"}, {"distinct", false}, {"out", fresh()}},
                        Dict{{"agg", "count"}, {"distinct", false}, {"expr", var(variable())}, {"out", fresh()}}};
        Draft made;
        made.node = n_.node("group", {{"in", in.node}, {"keys", keys}, {"aggs", aggregates}, {"implicit", implicit}});
        return made;
    }

    std::mt19937_64 random_;
    Nodes n_;
    List subplans_;
    bool with_seed_ = false;
    std::uint64_t next_slot_ = kMember + 1;
    std::set<std::uint64_t> row_slots_;
};

class RandomPlans : public ExecTest {
protected:
    static Solutions solutions(const Table& table) {
        Solutions rows(table.rows);
        for (std::size_t i = 0; i < table.rows; ++i)
            for (std::size_t c = 0; c < table.columns.size(); ++c)
                if (table.columns[c][i] != 0) rows[i][table.slots[c]] = table.columns[c][i];
        return rows;
    }
    /// Sorted, without what the order of rows decides.
    static Solutions comparable(Solutions rows, const std::set<std::uint64_t>& row_slots) {
        for (Solution& row : rows)
            for (std::uint64_t slot : row_slots) row.erase(slot);
        std::sort(rows.begin(), rows.end());
        return rows;
    }
    void load(const std::vector<std::vector<Oracle::Quad>>& sources) {
        for (std::size_t i = 1; i < sources.size(); ++i) windows.emplace_back(labels);
        for (std::size_t i = 0; i < sources.size(); ++i)
            for (const auto& q : sources[i]) (i == 0 ? graph : windows[i - 1]).add(q.s, q.p, q.o, q.g);
    }
    static Table seed_of(const Solutions& rows, bool with_seed) {
        if (!with_seed) return unit();
        Rows cells;
        for (const Solution& row : rows) cells.push_back({row.at(Generator::kMember), row.at(0)});
        return seed_table({Generator::kMember, 0}, cells);
    }
};

/// PENSTOCK_EXEC_CASE=n repeats one case.
std::size_t first_case() {
    const char* given = std::getenv("PENSTOCK_EXEC_CASE");
    return given == nullptr ? 1 : std::strtoul(given, nullptr, 10);
}
std::size_t cases() {
    if (std::getenv("PENSTOCK_EXEC_CASE") != nullptr) return first_case();
    const char* given = std::getenv("PENSTOCK_EXEC_CASES");
    return given == nullptr ? 3000 : std::strtoul(given, nullptr, 10);
}

TEST(RandomPlan, agrees_with_the_row_at_a_time_evaluator) {
    std::size_t nonempty = 0;
    exec::IndexedSeed::from = 0;
    for (std::size_t number = first_case(); number <= cases(); ++number) {
        struct Case : RandomPlans {
            void TestBody() override {}
            using RandomPlans::load, RandomPlans::run_table, RandomPlans::seed_of, RandomPlans::solutions,
                RandomPlans::comparable;
        } one;
        Generator generator(number);
        Oracle oracle;
        oracle.sources = generator.data();
        one.load(oracle.sources);
        bool with_seed = generator.chance(50);
        Spec spec = generator.plan(with_seed);
        if (with_seed) oracle.seed = generator.seed_rows();
        Solutions expected = Case::comparable(oracle.run(spec), generator.row_slots());
        Plan plan(spec);
        Table seed = Case::seed_of(oracle.seed, with_seed);
        for (int again = 0; again < 2; ++again) {
            Solutions found = Case::comparable(Case::solutions(one.run_table(plan, seed)), generator.row_slots());
            ASSERT_EQ(found, expected) << "case " << number << (again ? ", second run: " : ": ") << show(spec);
        }
        if (with_seed) {
            exec::IndexedSeed indexed(seed);
            indexed.begin_run(plan.seed());
            Table rows = one.run_table(plan, indexed.table(), nullptr, &indexed);
            ASSERT_EQ(Case::comparable(Case::solutions(rows), generator.row_slots()), expected)
                << "case " << number << ", indexed: " << show(spec);
        }
        nonempty += !expected.empty();
    }
    std::printf("%zu cases, %zu with an answer\n", cases(), nonempty);
}

}  // namespace
}  // namespace penstock::test
