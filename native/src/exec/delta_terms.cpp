// Writes the terms of a chain's change.
#include <numeric>

#include "exec/delta_chain.hpp"

namespace penstock::exec::delta {

namespace {

constexpr std::uint64_t kNoNode = 0xFFFFFFFF;  // the id of nodes that the plan does not have

bool has_all(const Slots& all, const Slots& some) {
    return std::includes(all.begin(), all.end(), some.begin(), some.end());
}

Spec slots_spec(const Slots& slots) {
    Spec::List list;
    for (const std::uint64_t slot : slots) list.emplace_back(slot);
    return list;
}

Spec project(Spec in, Spec slots) {
    return Spec::Dict{{"op", "project"}, {"id", kNoNode}, {"in", std::move(in)}, {"slots", std::move(slots)}};
}

}  // namespace

Spec replaced(const Spec& node, std::vector<std::pair<std::string, Spec>> members, std::string_view without) {
    Spec::Dict out;
    for (const auto& [name, value] : node.as_dict()) {
        const auto same = [&](const auto& member) { return member.first == name; };
        if (name != without && std::none_of(members.begin(), members.end(), same)) out.emplace_back(name, value);
    }
    for (auto& member : members) out.push_back(std::move(member));
    return out;
}

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

}  // namespace penstock::exec::delta
