#include "exec/delta_plan.hpp"

#include <algorithm>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "expr/steady.hpp"

namespace penstock::exec {

namespace {

using Slots = std::set<std::uint64_t>;

constexpr std::uint64_t kNoNode = 0xFFFFFFFF;  // the id of nodes that the plan does not have

bool has_all(const Slots& all, const Slots& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

Slots common(const Slots& a, const Slots& b) {
    Slots both;
    std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(both, both.end()));
    return both;
}

void add_variables(const Spec& expression, Slots& out) {
    if (const Spec* slot = expression.find("var")) out.insert(slot->as_int());
    if (const Spec* arguments = expression.find("args"))
        for (const Spec& argument : arguments->as_list()) add_variables(argument, out);
}

Slots variables_of_scan(const Spec& scan) {
    Slots out;
    for (const char* position : {"s", "p", "o"}) add_variables(scan.at(position), out);
    if (const Spec* graph = scan.find("graph")) out.insert(graph->as_int());
    return out;
}

Spec replaced(const Spec& node, std::vector<std::pair<std::string, Spec>> members, std::string_view without = {}) {
    Spec::Dict out;
    for (const auto& [name, value] : node.as_dict()) {
        const auto same = [&](const auto& member) { return member.first == name; };
        if (name != without && std::none_of(members.begin(), members.end(), same)) out.emplace_back(name, value);
    }
    for (auto& member : members) out.push_back(std::move(member));
    return out;
}

Spec slots_spec(const Slots& slots) {
    Spec::List list;
    for (const std::uint64_t slot : slots) list.emplace_back(slot);
    return list;
}

Spec project(Spec in, Spec slots) {
    return Spec::Dict{{"op", "project"}, {"id", kNoNode}, {"in", std::move(in)}, {"slots", std::move(slots)}};
}

struct Scan {
    const Spec* node;
    std::size_t set;  // number of the union that it reads
    Slots variables;
};

/// A filter, an extension, or an EXISTS test.
struct Step {
    const Spec* node;
    Slots uses;                            // what must be bound before it
    std::vector<Scan> inner;               // of an EXISTS test, from its outer rows upwards
    std::vector<const Spec*> inner_nodes;  // all nodes of the inner side, in the same order
    bool is_test() const { return !inner_nodes.empty(); }
};

/// Which content each factor of a term reads.
enum class Content : std::uint8_t { Now, Before, Changed };

class Chain {
public:
    Chain(const Spec& input, const std::vector<Slot>& seed) : seed_(seed.begin(), seed.end()), bound_(seed_) {
        sound_ = read(input);
    }
    DeltaPlan plan(const std::vector<Slot>& output);

private:
    bool read(const Spec& input);
    bool read_scan(const Spec& node, std::vector<Scan>& out);
    std::size_t union_of(const Spec& scan);
    bool read_node(const Spec& node);
    bool read_test(const Spec& node);
    bool use(const Slots& slots);
    bool bind(std::uint64_t slot);
    void drop_all_but(const Spec& slots);

    Spec source_spec(const Scan& scan, Content content) const;
    Spec scan_spec(const Scan& scan, Content content, Spec in) const;
    Spec test_spec(const Step& step, Content content, Spec in) const;
    Spec join(std::vector<std::size_t> scans, Slots bound, Spec in, const std::function<Content(std::size_t)>& content,
              const std::function<Content(std::size_t)>& tests, bool with_steps) const;
    bool place_steps(std::vector<std::size_t>& pending, const Slots& bound, Spec& node,
                     const std::function<Content(std::size_t)>& tests) const;
    DeltaTerm scan_term(std::size_t number, const Spec& output) const;
    DeltaTerm test_term(std::size_t number, const Spec& output) const;
    std::size_t tests_before(std::size_t step) const;
    bool connected(const Scan& inner) const;

    Slots seed_, bound_, dropped_, extended_, free_;
    Slots scanned_;  // the seed's slots and those of scans: rows are distinct in them
    const Spec* leaf_ = nullptr;
    std::vector<Scan> scans_;
    std::vector<Step> steps_;
    DeltaSources sources_;
    std::vector<DeltaUnion> unions_;
    bool sound_ = false;
};

bool Chain::use(const Slots& slots) {
    for (const std::uint64_t slot : slots) {
        if (dropped_.contains(slot)) return false;
        if (!bound_.contains(slot)) free_.insert(slot);
    }
    return true;
}

bool Chain::bind(std::uint64_t slot) {
    if (dropped_.contains(slot) || free_.contains(slot)) return false;
    bound_.insert(slot);
    return true;
}

void Chain::drop_all_but(const Spec& slots) {
    Slots rest;
    for (const Spec& slot : slots.as_list()) rest.insert(slot.as_int());
    for (const std::uint64_t slot : bound_)
        if (!rest.contains(slot)) dropped_.insert(slot);
}

/// Whether a triple can only be in one of the graphs that a part of a scan's dataset reads. A triple in two graphs is
/// one match, so the change of a graph would not be that of the pattern.
bool is_one_graph(const Spec& scan, const Spec& part) {
    const Spec* graphs = part.find("graphs");
    if (graphs == nullptr || (graphs->is_list() && graphs->as_list().size() == 1)) return true;
    return scan.find("graph") != nullptr && part.find("name") == nullptr;  // a match for each graph
}

/// Whether the dataset's parts have the same label for a predicate, so that edges of one are found in another.
bool is_default_graph(const Spec& scan) {
    const auto part_of_it = [](const Spec& part) {
        const Spec* graphs = part.find("graphs");
        return graphs == nullptr ||
               (graphs->is_list() && graphs->as_list().size() == 1 && graphs->as_list()[0].as_int() == 0);
    };
    const Spec::List& parts = scan.at("dataset").as_list();
    return scan.find("graph") == nullptr && std::all_of(parts.begin(), parts.end(), part_of_it);
}

/// Returns the number of the union of the scan's sources. A union is a set, so a source that occurs twice changes
/// nothing.
std::size_t Chain::union_of(const Spec& scan) {
    std::set<std::size_t> found;
    for (const Spec& part : scan.at("dataset").as_list()) found.insert(part.at("src").as_int());
    const std::vector<std::size_t> sources(found.begin(), found.end());
    sources_.count = std::max(sources_.count, sources.back() + 1);
    auto at = std::ranges::find(unions_, sources, &DeltaUnion::sources);
    if (at == unions_.end()) at = unions_.insert(at, {sources, {}, false});
    if (const Spec* predicate = scan.at("p").find("id"))
        at->predicates.push_back(predicate->as_int());
    else
        at->any_predicate = true;
    return static_cast<std::size_t>(at - unions_.begin());
}

bool Chain::read_scan(const Spec& node, std::vector<Scan>& out) {
    const Spec::List& dataset = node.at("dataset").as_list();
    if (dataset.empty() || !(dataset.size() == 1 ? is_one_graph(node, dataset[0]) : is_default_graph(node)))
        return false;
    out.push_back({&node, union_of(node), variables_of_scan(node)});
    const DeltaUnion& set = unions_[out.back().set];
    if (set.any_predicate && set.sources.front() == 0) return false;
    return common(out.back().variables, extended_).empty();
}

bool Chain::read_test(const Spec& node) {
    Step step{&node, {}, {}, {}};
    const Spec* at = &node.at("inner");
    for (; at->at("op").as_string() != "outer"; at = &at->at("in")) {
        if (at->at("op").as_string() != "scan") return false;
        step.inner_nodes.push_back(at);
    }
    std::reverse(step.inner_nodes.begin(), step.inner_nodes.end());
    if (step.inner_nodes.empty()) return false;
    for (const Spec* inner : step.inner_nodes) {
        if (!read_scan(*inner, step.inner) || !use(step.inner.back().variables)) return false;
        step.uses.merge(common(step.inner.back().variables, bound_));
    }
    steps_.push_back(std::move(step));
    return true;
}

bool Chain::read_node(const Spec& node) {
    const std::string& op = node.at("op").as_string();
    if (op == "scan") {
        if (!read_scan(node, scans_)) return false;
        for (const std::uint64_t slot : scans_.back().variables)
            if (!bind(slot)) return false;
        scanned_.insert(scans_.back().variables.begin(), scans_.back().variables.end());
        if (const Spec* keep = node.find("keep")) drop_all_but(*keep);
        return true;
    }
    if (op == "project") {
        drop_all_but(node.at("slots"));
        return true;
    }
    if (op == "semijoin") return read_test(node);
    if (op != "filter" && op != "extend") return false;
    if (!expr::is_steady(node.at("expr"))) return false;
    Step step{&node, {}, {}, {}};
    Slots variables;
    add_variables(node.at("expr"), variables);
    if (!use(variables)) return false;
    step.uses = common(variables, bound_);
    steps_.push_back(std::move(step));
    if (op == "filter") return true;
    const std::uint64_t slot = node.at("slot").as_int();
    extended_.insert(slot);
    return bind(slot);
}

bool Chain::read(const Spec& input) {
    std::vector<const Spec*> nodes;
    const Spec* at = &input;
    for (; at->at("op").as_string() != "seed"; at = &at->at("in")) {
        if (at->find("in") == nullptr) return false;
        nodes.push_back(at);
    }
    leaf_ = at;
    scanned_ = seed_;
    std::reverse(nodes.begin(), nodes.end());
    return std::all_of(nodes.begin(), nodes.end(), [this](const Spec* node) { return read_node(*node); });
}

// ---- writing terms

Spec Chain::source_spec(const Scan& scan, Content content) const {
    const Spec::List& parts = scan.node->at("dataset").as_list();
    if (content == Content::Now) return parts;
    const std::uint64_t changed = sources_.changed(scan.set);
    if (content == Content::Changed && parts.size() > 1) return Spec::List{Spec::Dict{{"src", changed}}};
    Spec::List out;
    for (const Spec& part : parts) {
        const std::uint64_t before = sources_.before(part.at("src").as_int());
        out.push_back(replaced(part, {{"src", content == Content::Before ? before : changed}}));
    }
    return out;
}

Spec Chain::scan_spec(const Scan& scan, Content content, Spec in) const {
    return replaced(*scan.node, {{"in", std::move(in)}, {"dataset", source_spec(scan, content)}}, "keep");
}

Spec Chain::test_spec(const Step& step, Content content, Spec in) const {
    const Spec* leaf = &step.inner_nodes.front()->at("in");
    Spec inner = *leaf;
    for (const Scan& scan : step.inner)
        inner = replaced(*scan.node, {{"in", std::move(inner)}, {"dataset", source_spec(scan, content)}});
    return replaced(*step.node, {{"in", std::move(in)}, {"inner", std::move(inner)}});
}

/// Adds the steps whose variables are bound; repeats, as one may bind a variable of another.
bool Chain::place_steps(std::vector<std::size_t>& pending, const Slots& bound, Spec& node,
                        const std::function<Content(std::size_t)>& tests) const {
    Slots known = bound;
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < pending.size(); ++i) {
            const Step& step = steps_[pending[i]];
            if (!has_all(known, step.uses)) continue;
            if (const Spec* slot = step.node->find("slot")) known.insert(slot->as_int());
            node = step.is_test() ? test_spec(step, tests(pending[i]), std::move(node))
                                  : replaced(*step.node, {{"in", std::move(node)}});
            pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i--));
            again = true;
        }
    }
    return pending.empty();
}

/// Joins scans to `in`, connected ones first, and applies each step as soon as possible.
Spec Chain::join(std::vector<std::size_t> scans, Slots bound, Spec in,
                 const std::function<Content(std::size_t)>& content, const std::function<Content(std::size_t)>& tests,
                 bool with_steps) const {
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; with_steps && i < steps_.size(); ++i) pending.push_back(i);
    place_steps(pending, bound, in, tests);
    while (!scans.empty()) {
        auto next = std::find_if(scans.begin(), scans.end(), [&](std::size_t scan) {
            Slots own = common(scans_[scan].variables, bound);
            return std::any_of(own.begin(), own.end(), [this](std::uint64_t slot) { return !seed_.contains(slot); });
        });
        if (next == scans.end()) next = scans.begin();
        const Scan& scan = scans_[*next];
        in = scan_spec(scan, content(*next), std::move(in));
        bound.insert(scan.variables.begin(), scan.variables.end());
        scans.erase(next);
        place_steps(pending, bound, in, tests);
    }
    return in;
}

DeltaTerm Chain::scan_term(std::size_t number, const Spec& output) const {
    std::vector<std::size_t> others;
    for (std::size_t i = 0; i < scans_.size(); ++i)
        if (i != number) others.push_back(i);
    Slots bound = seed_;
    bound.insert(scans_[number].variables.begin(), scans_[number].variables.end());
    const auto content = [number](std::size_t scan) { return scan < number ? Content::Now : Content::Before; };
    const auto tests = [](std::size_t) { return Content::Before; };
    Spec node = join(others, bound, scan_spec(scans_[number], Content::Changed, *leaf_), content, tests, true);
    return {project(std::move(node), output), {}, {scans_[number].set}};
}

/// The rows whose test may have changed are found from the changes of what the test reads. Such a row may
/// be found several times; because it has the variables of all scans, equal rows are one row.
DeltaTerm Chain::test_term(std::size_t number, const Spec& output) const {
    const Step& step = steps_[number];
    const auto now = [](std::size_t) { return Content::Now; };
    std::vector<std::size_t> all(scans_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
    DeltaTerm term;
    Spec::List found;
    for (const Scan& inner : step.inner) {
        term.unions.push_back(inner.set);
        Slots bound = seed_;
        bound.insert(inner.variables.begin(), inner.variables.end());
        Spec rows = join(all, bound, scan_spec(inner, Content::Changed, *leaf_), now, now, false);
        found.push_back(project(std::move(rows), slots_spec(scanned_)));
    }
    Spec rows = Spec::Dict{{"op", "union"}, {"id", kNoNode}, {"inputs", std::move(found)}};
    rows = Spec::Dict{{"op", "distinct"}, {"id", kNoNode}, {"in", std::move(rows)}};
    const auto with = [&](Content own) {
        const auto tests = [number, own](std::size_t test) {
            return test == number ? own : test < number ? Content::Now : Content::Before;
        };
        return project(join({}, scanned_, rows, now, tests, true), output);
    };
    term.node = with(Content::Now);
    term.before = with(Content::Before);
    return term;
}

/// Whether the rows that a change of this pattern affects are found without a scan of all rows.
bool Chain::connected(const Scan& inner) const {
    const Slots shared = common(inner.variables, scanned_);
    return std::any_of(shared.begin(), shared.end(), [this](std::uint64_t slot) { return !seed_.contains(slot); });
}

DeltaPlan Chain::plan(const std::vector<Slot>& output) {
    DeltaPlan plan;
    if (!sound_) return plan;
    plan.sources = sources_;
    plan.unions = unions_;
    plan.computed.assign(extended_.begin(), extended_.end());
    Spec::List slots;
    for (const Slot slot : output) slots.emplace_back(std::uint64_t{slot});
    for (std::size_t i = 0; i < scans_.size(); ++i) plan.terms.push_back(scan_term(i, slots));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (!steps_[i].is_test()) continue;
        if (!std::ranges::all_of(steps_[i].inner, [this](const Scan& inner) { return connected(inner); })) return {};
        plan.terms.push_back(test_term(i, slots));
    }
    return plan;
}

}  // namespace

DeltaPlan delta_plan(const Spec& input, const std::vector<Slot>& seed, const std::vector<Slot>& output) {
    return Chain(input, seed).plan(output);
}

}  // namespace penstock::exec
