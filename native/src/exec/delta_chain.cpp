// Reads the nodes of a chain: which scans, steps and tests it has, and whether its change can be computed.
#include "exec/delta_chain.hpp"
#include "expr/steady.hpp"

namespace penstock::exec::delta {

namespace {

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

}  // namespace

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
    for (const char* position : {"s", "p", "o"})
        if (node.at(position).find("any") != nullptr) return false;
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
    const auto add_condition = [&](const Spec& with_expression) {
        step.conditions.push_back({&with_expression});
        add_variables(with_expression.at("expr"), step.conditions.back().uses);
        tested.insert(step.conditions.back().uses.begin(), step.conditions.back().uses.end());
    };
    for (const Spec* inner : step.inner_nodes)
        if (inner->find("expr") != nullptr) add_condition(*inner);
    if (const Spec* condition = node.find("expr")) {
        if (!expr::is_steady(*condition)) return false;
        add_condition(node);
    }
    Slots all = found;
    all.insert(tested.begin(), tested.end());
    step.uses = common(all, bound_);
    Slots known = step.uses;
    known.insert(found.begin(), found.end());
    for (Step& condition : step.conditions) condition.uses = common(condition.uses, known);
    for (const std::uint64_t slot : found) {
        if (!step.is_optional() || bound_.contains(slot)) continue;
        if (!bind(slot)) return false;
        step.binds.insert(slot);
        optional_.insert(slot);
    }
    if (!use(all)) return false;
    steps_.push_back(std::move(step));
    return true;
}

bool Chain::read_construct(const Spec& node) {
    if (node.find("all") == nullptr) return false;
    construct_ = &node;
    Slots variables;
    for (const Spec& triple : node.at("template").as_list())
        for (const Spec& term : triple.as_list()) add_variables(term, variables);
    if (const Spec* member = node.find("member"); member != nullptr && !member->is_null())
        variables.insert(member->as_int());
    return use(variables);
}

bool Chain::read_node(const Spec& node) {
    if (construct_ != nullptr) return false;
    const std::string& op = node.at("op").as_string();
    if (op == "construct") return read_construct(node);
    if (op == "scan") {
        if (!read_scan(node, scans_)) return false;
        for (const std::uint64_t slot : scans_.back().variables)
            if (!bind(slot)) return false;
        if (!common(scans_.back().variables, optional_).empty()) return false;
        scanned_.insert(scans_.back().variables.begin(), scans_.back().variables.end());
        if (const Spec* keep = node.find("keep")) drop_all_but(*keep);
        return true;
    }
    if (op == "project" && node.find("slots") != nullptr) {
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

}  // namespace penstock::exec::delta
