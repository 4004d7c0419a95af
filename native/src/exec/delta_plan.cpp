#include "exec/delta_plan.hpp"

#include "exec/delta_chain.hpp"

namespace penstock::exec {

namespace {

constexpr std::size_t kMostChains = 8;

/// The chains whose rows together are those of a node: one for each combination of inputs of its UNIONs.
std::vector<Spec> chains_of(const Spec& node) {
    std::vector<Spec> chains;
    if (node.at("op").as_string() == "union") {
        for (const Spec& input : node.at("inputs").as_list())
            for (const Spec& chain : chains_of(input)) chains.push_back(chain);
    } else if (const Spec* in = node.find("in")) {
        for (const Spec& chain : chains_of(*in)) chains.push_back(delta::replaced(node, {{"in", chain}}));
    } else {
        chains.push_back(node);
    }
    return chains;
}

}  // namespace

DeltaPlan delta_plan(const Spec& input, const std::vector<Slot>& seed, const std::vector<Slot>& output) {
    const std::vector<Spec> inputs = chains_of(input);
    if (inputs.size() > kMostChains) return {};
    delta::Shared shared;
    std::vector<delta::Chain> chains;
    for (const Spec& chain : inputs) chains.emplace_back(chain, seed, shared);
    DeltaPlan plan{shared.sources, shared.unions, {}, {}};
    Spec::List slots;
    for (const Slot slot : output) slots.emplace_back(std::uint64_t{slot});
    for (const delta::Chain& chain : chains)
        if (!chain.add_terms(slots, plan)) return {};
    return plan;
}

}  // namespace penstock::exec
