#include "exec/delta_plan.hpp"

#include <algorithm>
#include <functional>
#include <numeric>
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

/// A filter, an extension, or a test: EXISTS or OPTIONAL, whose output depends on the matches of a row.
struct Step {
    const Spec* node;
    Slots uses = {};                            // what must be bound before it
    Slots binds = {};                           // what it binds
    std::vector<Scan> inner = {};               // of a test, from its outer rows upwards
    std::vector<const Spec*> inner_nodes = {};  // all nodes of the inner side, in the same order
    bool is_test() const { return !inner_nodes.empty(); }
};

/// Which content each factor of a term reads. Either: the union of the present and the previous one.
enum class Content : std::uint8_t { Now, Before, Either, Changed };

/// What the chains of one input share.
struct Shared {
    DeltaSources sources;
    std::vector<DeltaUnion> unions;
};

class Chain {
public:
    Chain(const Spec& input, const std::vector<Slot>& seed, Shared& shared)
        : seed_(seed.begin(), seed.end()), bound_(seed_), shared_(shared) {
        sound_ = read(input);
    }
    /// Call when all chains have been read. Returns false if the chain cannot be maintained.
    bool add_terms(const Spec& output, DeltaPlan& plan) const;

private:
    bool read(const Spec& input);
    bool read_scan(const Spec& node, std::vector<Scan>& out);
    std::size_t union_of(const Spec& scan);
    bool read_node(const Spec& node);
    bool read_test(const Spec& node);
    bool read_inner(Step& step);
    bool use(const Slots& slots);
    bool bind(std::uint64_t slot);
    void drop_all_but(const Spec& slots);

    Spec source_spec(const Scan& scan, Content content) const;
    Spec scan_spec(const Scan& scan, Content content, Spec in) const;
    Spec test_spec(const Step& step, Content content, Spec in) const;
    Spec join(std::vector<std::size_t> scans, Slots bound, Spec in, const std::function<Content(std::size_t)>& content,
              const std::function<Content(std::size_t)>& tests, bool with_steps) const;
    void place_steps(std::vector<std::size_t>& pending, Slots& bound, Spec& node,
                     const std::function<Content(std::size_t)>& tests) const;
    DeltaTerm scan_term(std::size_t number, const Spec& output) const;
    DeltaTerm test_term(std::size_t number, const Spec& output) const;
    Spec affected(const Step& step, std::size_t changed) const;
    bool connected(const Step& step) const;

    Slots seed_, bound_, dropped_, extended_, free_;
    Slots optional_;  // unbound in some rows
    Slots scanned_;   // the seed's slots and those of scans: rows are distinct in them
    const Spec* leaf_ = nullptr;
    std::vector<Scan> scans_;
    std::vector<Step> steps_;
    Shared& shared_;
    bool sound_ = false;
    mutable bool placed_ = true;  // whether every term has all steps
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
    shared_.sources.count = std::max(shared_.sources.count, sources.back() + 1);
    auto at = std::ranges::find(shared_.unions, sources, &DeltaUnion::sources);
    if (at == shared_.unions.end()) at = shared_.unions.insert(at, {sources, {}, false});
    if (const Spec* predicate = scan.at("p").find("id"))
        at->predicates.push_back(predicate->as_int());
    else
        at->any_predicate = true;
    return static_cast<std::size_t>(at - shared_.unions.begin());
}

bool Chain::read_scan(const Spec& node, std::vector<Scan>& out) {
    const Spec::List& dataset = node.at("dataset").as_list();
    if (dataset.empty() || !(dataset.size() == 1 ? is_one_graph(node, dataset[0]) : is_default_graph(node)))
        return false;
    out.push_back({&node, union_of(node), variables_of_scan(node)});
    const DeltaUnion& set = shared_.unions[out.back().set];
    if (set.any_predicate && set.sources.front() == 0) return false;
    return common(out.back().variables, extended_).empty();
}

bool Chain::read_inner(Step& step) {
    const Spec* at = &step.node->at("inner");
    for (; at->at("op").as_string() != "outer"; at = &at->at("in")) {
        const std::string& op = at->at("op").as_string();
        if (op != "scan" && op != "filter") return false;
        if (op == "filter" && !expr::is_steady(at->at("expr"))) return false;
        step.inner_nodes.push_back(at);
    }
    std::reverse(step.inner_nodes.begin(), step.inner_nodes.end());
    for (const Spec* inner : step.inner_nodes)
        if (inner->at("op").as_string() == "scan" && !read_scan(*inner, step.inner)) return false;
    return !step.inner.empty();
}

bool Chain::read_test(const Spec& node) {
    Step step{&node};
    if (!read_inner(step)) return false;
    Slots tested, found;
    for (const Scan& scan : step.inner) found.insert(scan.variables.begin(), scan.variables.end());
    for (const Spec* inner : step.inner_nodes)
        if (const Spec* expression = inner->find("expr")) add_variables(*expression, tested);
    if (const Spec* condition = node.find("expr")) {
        if (!expr::is_steady(*condition)) return false;
        add_variables(*condition, tested);
    }
    Slots all = found;
    all.insert(tested.begin(), tested.end());
    step.uses = common(all, bound_);
    const bool optional = node.at("op").as_string() == "optional";
    for (const std::uint64_t slot : found) {
        if (!optional || bound_.contains(slot)) continue;
        if (!bind(slot)) return false;
        step.binds.insert(slot);
        optional_.insert(slot);
    }
    if (!use(all)) return false;
    steps_.push_back(std::move(step));
    return true;
}

bool Chain::read_node(const Spec& node) {
    const std::string& op = node.at("op").as_string();
    if (op == "scan") {
        if (!read_scan(node, scans_)) return false;
        for (const std::uint64_t slot : scans_.back().variables)
            if (!bind(slot)) return false;
        if (!common(scans_.back().variables, optional_).empty()) return false;
        scanned_.insert(scans_.back().variables.begin(), scans_.back().variables.end());
        if (const Spec* keep = node.find("keep")) drop_all_but(*keep);
        return true;
    }
    if (op == "project") {
        drop_all_but(node.at("slots"));
        return true;
    }
    if (op == "semijoin" || op == "optional") return read_test(node);
    if (op != "filter" && op != "extend") return false;
    if (!expr::is_steady(node.at("expr"))) return false;
    Step step{&node};
    Slots variables;
    add_variables(node.at("expr"), variables);
    if (!use(variables)) return false;
    step.uses = common(variables, bound_);
    if (op == "extend") {
        const std::uint64_t slot = node.at("slot").as_int();
        extended_.insert(slot);
        step.binds.insert(slot);
        if (!bind(slot)) return false;
    }
    steps_.push_back(std::move(step));
    return true;
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
    const std::uint64_t changed = shared_.sources.changed(scan.set);
    if (content == Content::Changed && parts.size() > 1) return Spec::List{Spec::Dict{{"src", changed}}};
    Spec::List out;
    if (content == Content::Either) out = parts;
    for (const Spec& part : parts) {
        const std::uint64_t before = shared_.sources.before(part.at("src").as_int());
        out.push_back(replaced(part, {{"src", content == Content::Changed ? changed : before}}));
    }
    return out;
}

Spec Chain::scan_spec(const Scan& scan, Content content, Spec in) const {
    return replaced(*scan.node, {{"in", std::move(in)}, {"dataset", source_spec(scan, content)}}, "keep");
}

Spec Chain::test_spec(const Step& step, Content content, Spec in) const {
    const Spec* leaf = &step.inner_nodes.front()->at("in");
    Spec inner = *leaf;
    auto scan = step.inner.begin();
    for (const Spec* node : step.inner_nodes) {
        if (node->at("op").as_string() != "scan")
            inner = replaced(*node, {{"in", std::move(inner)}});
        else
            inner = replaced(*node, {{"in", std::move(inner)}, {"dataset", source_spec(*scan++, content)}});
    }
    return replaced(*step.node, {{"in", std::move(in)}, {"inner", std::move(inner)}});
}

/// Adds the steps whose variables are bound, and what they bind; repeats, as one may bind a variable of another.
void Chain::place_steps(std::vector<std::size_t>& pending, Slots& bound, Spec& node,
                        const std::function<Content(std::size_t)>& tests) const {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < pending.size(); ++i) {
            const Step& step = steps_[pending[i]];
            if (!has_all(bound, step.uses)) continue;
            bound.insert(step.binds.begin(), step.binds.end());
            node = step.is_test() ? test_spec(step, tests(pending[i]), std::move(node))
                                  : replaced(*step.node, {{"in", std::move(node)}});
            pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i--));
            again = true;
        }
    }
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
    placed_ = placed_ && pending.empty();
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

/// The rows whose test may have a match, now or before, with a changed edge at one of the test's scans; perhaps others.
Spec Chain::affected(const Step& step, std::size_t changed) const {
    const Scan& first = step.inner[changed];
    Slots bound = seed_;
    bound.insert(first.variables.begin(), first.variables.end());
    Spec rows = scan_spec(first, Content::Changed, *leaf_);
    // The scans of the test that lead to the row's variables.
    std::vector<const Scan*> rest;
    for (const Scan& scan : step.inner)
        if (&scan != &first) rest.push_back(&scan);
    const auto joins = [&](const Scan* scan) {
        return !common(scan->variables, bound).empty() && !has_all(seed_, common(scan->variables, bound));
    };
    while (has_all(seed_, common(bound, scanned_))) {
        const auto next = std::ranges::find_if(rest, joins);
        if (next == rest.end()) return {};
        rows = scan_spec(**next, Content::Either, std::move(rows));
        bound.insert((*next)->variables.begin(), (*next)->variables.end());
        rest.erase(next);
    }
    std::vector<std::size_t> all(scans_.size());
    std::iota(all.begin(), all.end(), 0);
    const auto now = [](std::size_t) { return Content::Now; };
    return project(join(all, bound, std::move(rows), now, now, false), slots_spec(scanned_));
}

/// The rows whose test may have changed are found from the changes of what the test reads. Such a row may be found
/// several times; because it has the variables of all scans, equal rows are one row.
DeltaTerm Chain::test_term(std::size_t number, const Spec& output) const {
    const Step& step = steps_[number];
    const auto now = [](std::size_t) { return Content::Now; };
    DeltaTerm term;
    Spec::List found;
    for (std::size_t i = 0; i < step.inner.size(); ++i) {
        term.unions.push_back(step.inner[i].set);
        found.push_back(affected(step, i));
    }
    Spec rows = Spec::Dict{{"op", "union"}, {"id", kNoNode}, {"inputs", std::move(found)}};
    rows = Spec::Dict{{"op", "distinct"}, {"id", kNoNode}, {"in", std::move(rows)}, {"once", true}};
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

/// Whether the rows that a change affects are found without a scan of all rows.
bool Chain::connected(const Step& step) const {
    for (std::size_t i = 0; i < step.inner.size(); ++i)
        if (affected(step, i).is_null()) return false;
    return true;
}

bool Chain::add_terms(const Spec& output, DeltaPlan& plan) const {
    if (!sound_) return false;
    plan.computed.insert(plan.computed.end(), extended_.begin(), extended_.end());
    for (std::size_t i = 0; i < scans_.size(); ++i) plan.terms.push_back(scan_term(i, output));
    for (std::size_t i = 0; i < steps_.size(); ++i) {
        if (!steps_[i].is_test()) continue;
        if (!connected(steps_[i])) return false;
        plan.terms.push_back(test_term(i, output));
    }
    return placed_;
}

constexpr std::size_t kMostChains = 8;

/// The chains whose rows together are those of a node: one for each combination of inputs of its UNIONs.
std::vector<Spec> chains_of(const Spec& node) {
    std::vector<Spec> chains;
    if (node.at("op").as_string() == "union") {
        for (const Spec& input : node.at("inputs").as_list())
            for (const Spec& chain : chains_of(input)) chains.push_back(chain);
    } else if (const Spec* in = node.find("in")) {
        for (const Spec& chain : chains_of(*in)) chains.push_back(replaced(node, {{"in", chain}}));
    } else {
        chains.push_back(node);
    }
    return chains;
}

}  // namespace

DeltaPlan delta_plan(const Spec& input, const std::vector<Slot>& seed, const std::vector<Slot>& output) {
    const std::vector<Spec> inputs = chains_of(input);
    if (inputs.size() > kMostChains) return {};
    Shared shared;
    std::vector<Chain> chains;
    for (const Spec& chain : inputs) chains.emplace_back(chain, seed, shared);
    DeltaPlan plan{shared.sources, shared.unions, {}, {}};
    Spec::List slots;
    for (const Slot slot : output) slots.emplace_back(std::uint64_t{slot});
    for (const Chain& chain : chains)
        if (!chain.add_terms(slots, plan)) return {};
    return plan;
}

}  // namespace penstock::exec
