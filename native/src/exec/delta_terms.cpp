// Writes the terms of a chain's change.
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

Slots with(Slots all, const Slots& more) {
    all.insert(more.begin(), more.end());
    return all;
}

Spec filter(Spec in, Spec condition) {
    return Spec::Dict{{"op", "filter"}, {"id", kNoNode}, {"in", std::move(in)}, {"expr", std::move(condition)}};
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

/// The rows of a term as rows of the input: columns `slots`, or triples.
Spec Chain::output_of(Spec rows, const Spec& slots) const {
    return construct_ == nullptr ? project(std::move(rows), slots) : replaced(*construct_, {{"in", std::move(rows)}});
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

/// The inner side of a test.
Spec Chain::inner_spec(const Step& step, Content content) const {
    Spec inner = step.inner_nodes.front()->at("in");
    auto scan = step.inner.begin();
    for (const Spec* node : step.inner_nodes) {
        if (node->at("op").as_string() != "scan")
            inner = replaced(*node, {{"in", std::move(inner)}});
        else
            inner = replaced(*node, {{"in", std::move(inner)}, {"dataset", source_spec(*scan++, content)}});
    }
    return inner;
}

Spec Chain::step_spec(const ReadStep& read, Spec in) const {
    const Step& step = *read.step;
    // A condition of an OPTIONAL has the node of the OPTIONAL.
    if (!step.is_test() && step.is_optional()) return filter(std::move(in), step.node->at("expr"));
    if (!step.is_test()) return replaced(*step.node, {{"in", std::move(in)}});
    return replaced(*step.node, {{"in", std::move(in)}, {"inner", inner_spec(step, read.content)}});
}

/// The rows of `in` for which a test has a match, or those for which it has none.
Spec Chain::match_spec(const Step& step, Content content, bool has_match, Spec in) const {
    Spec inner = inner_spec(step, content);
    if (const Spec* condition = step.node->find("expr")) inner = filter(std::move(inner), *condition);
    return Spec::Dict{{"op", "semijoin"},
                      {"id", kNoNode},
                      {"in", std::move(in)},
                      {"inner", std::move(inner)},
                      {"row", step.node->at("row")},
                      {"anti", !has_match}};
}

Chain::ReadScans Chain::all_scans(Content content) const {
    ReadScans all;
    for (const Scan& scan : scans_) all.push_back({&scan, content});
    return all;
}

/// The other steps of a term in which step `number` is replaced: tests before it have their present matches.
Chain::ReadSteps Chain::steps_beside(std::size_t number) const {
    ReadSteps others;
    for (std::size_t i = 0; i < steps_.size(); ++i)
        if (i != number) others.push_back({&steps_[i], i < number ? Content::Now : Content::Before});
    return others;
}

/// Adds the steps whose variables are bound, and what they bind; repeats, as one may bind a variable of another.
void Chain::place_steps(ReadSteps& pending, Slots& bound, Spec& node) const {
    for (bool again = true; again;) {
        again = false;
        for (std::size_t i = 0; i < pending.size(); ++i) {
            const Step& step = *pending[i].step;
            if (!has_all(bound, step.uses)) continue;
            bound.insert(step.binds.begin(), step.binds.end());
            node = step_spec(pending[i], std::move(node));
            pending.erase(pending.begin() + static_cast<std::ptrdiff_t>(i--));
            again = true;
        }
    }
}

/// Joins scans to `in`, connected ones first, and applies each step as soon as possible.
Spec Chain::join(ReadScans scans, ReadSteps steps, Slots bound, Spec in) const {
    place_steps(steps, bound, in);
    while (!scans.empty()) {
        auto next = std::find_if(scans.begin(), scans.end(), [&](const ReadScan& read) {
            Slots own = common(read.scan->variables, bound);
            return std::any_of(own.begin(), own.end(), [this](std::uint64_t slot) { return !seed_.contains(slot); });
        });
        if (next == scans.end()) next = scans.begin();
        in = scan_spec(*next->scan, next->content, std::move(in));
        bound.insert(next->scan->variables.begin(), next->scan->variables.end());
        scans.erase(next);
        place_steps(steps, bound, in);
    }
    placed_ = placed_ && steps.empty();
    return in;
}

void Chain::add_scan_term(std::size_t number, const Spec& output, DeltaPlan& plan) const {
    ReadScans others;
    for (std::size_t i = 0; i < scans_.size(); ++i)
        if (i != number) others.push_back({&scans_[i], i < number ? Content::Now : Content::Before});
    ReadSteps steps;
    for (const Step& step : steps_) steps.push_back({&step, Content::Before});
    const Scan& scan = scans_[number];
    Spec node = join(others, steps, with(seed_, scan.variables), scan_spec(scan, Content::Changed, *leaf_));
    plan.terms.push_back({output_of(std::move(node), output), {}, {scan.set}});
}

/// The changed edges at one scan of a test, joined with those of its other scans that lead to the slots of `required`:
/// with `all`, to each of them, else to one that is not of the seed. Null if no scan leads there.
Spec Chain::from_changed(const Step& step, std::size_t changed, const Slots& required, bool all, Slots& bound) const {
    bound = with(seed_, step.inner[changed].variables);
    Spec rows = scan_spec(step.inner[changed], Content::Changed, *leaf_);
    std::vector<const Scan*> rest;
    for (std::size_t i = 0; i < step.inner.size(); ++i)
        if (i != changed) rest.push_back(&step.inner[i]);
    while (all ? !has_all(bound, required) : has_all(seed_, common(bound, required))) {
        const auto next = std::ranges::find_if(
            rest, [&](const Scan* scan) { return !has_all(seed_, common(scan->variables, bound)); });
        if (next == rest.end()) return {};
        rows = scan_spec(**next, Content::Either, std::move(rows));
        bound.insert((*next)->variables.begin(), (*next)->variables.end());
        rest.erase(next);
    }
    return rows;
}

/// The rows whose test may have a match, now or before, with a changed edge at one of the test's scans; perhaps others.
Spec Chain::affected(const Step& step, std::size_t changed) const {
    Slots bound;
    Spec rows = from_changed(step, changed, scanned_, false, bound);
    if (rows.is_null()) return {};
    return project(join(all_scans(Content::Now), {}, bound, std::move(rows)), slots_spec(scanned_));
}

/// The same, but only the variables of the rows that the test reads: the key. Null if they are not known without the
/// rows.
Spec Chain::affected_keys(const Step& step, std::size_t changed) const {
    if (!has_all(scanned_, step.uses) || has_all(seed_, step.uses)) return {};
    Slots bound;
    Spec rows = from_changed(step, changed, step.uses, true, bound);
    return rows.is_null() ? rows : project(std::move(rows), slots_spec(with(seed_, step.uses)));
}

/// The affected rows or keys of the changes at all scans of a test, each once. Null if they cannot be found.
Spec Chain::changed_rows(const Step& step, bool keys) const {
    Spec::List found;
    for (std::size_t i = 0; i < step.inner.size(); ++i) {
        found.push_back(keys ? affected_keys(step, i) : affected(step, i));
        if (found.back().is_null()) return {};
    }
    Spec rows = Spec::Dict{{"op", "union"}, {"id", kNoNode}, {"inputs", std::move(found)}};
    return Spec::Dict{{"op", "distinct"}, {"id", kNoNode}, {"in", std::move(rows)}, {"once", true}};
}

/// The rows whose test may have changed, with their present and their previous matches. A row may be found several
/// times; because it has the variables of all scans, equal rows are one row.
DeltaTerm Chain::affected_term(std::size_t number, const Spec& rows, const Spec& output) const {
    DeltaTerm term;
    for (const Content own : {Content::Now, Content::Before}) {
        ReadSteps steps = steps_beside(number);
        steps.insert(steps.begin() + static_cast<std::ptrdiff_t>(number), {&steps_[number], own});
        (own == Content::Now ? term.node : term.before) = output_of(join({}, steps, scanned_, rows), output);
    }
    return term;
}

/// The rows for whose key a first match was found, or the last match lost. Of an EXISTS, these rows enter or leave the
/// result. Of an OPTIONAL, they are the rows without a match. A first match has an added edge, and a lost one has a
/// removed edge.
DeltaTerm Chain::crossing_term(std::size_t number, const Spec& keys, const Spec& output) const {
    const Step& step = steps_[number];
    const Spec* anti = step.node->find("anti");
    const bool matched = !step.is_optional() && (anti == nullptr || !anti->as_bool());
    DeltaTerm term;
    term.crossing = matched ? DeltaTerm::Crossing::Gained : DeltaTerm::Crossing::Lost;
    for (const Content own : {Content::Now, Content::Before}) {
        const Content other = own == Content::Now ? Content::Before : Content::Now;
        Spec rows = match_spec(step, other, !matched, match_spec(step, own, matched, keys));
        const Slots bound = with(with(seed_, step.uses), step.binds);
        rows = project(std::move(rows), slots_spec(bound));  // what an OPTIONAL binds is unbound
        rows = join(all_scans(Content::Now), steps_beside(number), bound, std::move(rows));
        (own == Content::Now ? term.node : term.before) = output_of(std::move(rows), output);
    }
    return term;
}

/// The matches that an OPTIONAL has gained or lost, as in a join.
void Chain::add_match_terms(std::size_t number, const Spec& output, DeltaPlan& plan) const {
    const Step& step = steps_[number];
    for (std::size_t changed = 0; changed < step.inner.size(); ++changed) {
        const Scan& first = step.inner[changed];
        ReadScans scans;
        for (std::size_t i = 0; i < step.inner.size(); ++i)
            if (i != changed) scans.push_back({&step.inner[i], i < changed ? Content::Now : Content::Before});
        const ReadScans rows = all_scans(Content::Now);
        scans.insert(scans.end(), rows.begin(), rows.end());
        ReadSteps steps;
        for (const Step& condition : step.conditions) steps.push_back({&condition});
        const ReadSteps others = steps_beside(number);
        steps.insert(steps.end(), others.begin(), others.end());
        Spec node = join(scans, steps, with(seed_, first.variables), scan_spec(first, Content::Changed, *leaf_));
        plan.terms.push_back({output_of(std::move(node), output), {}, {first.set}});
    }
}

/// Returns false if the rows that a change affects are not found without a scan of all rows.
bool Chain::add_test_terms(std::size_t number, const Spec& output, DeltaPlan& plan) const {
    const Step& step = steps_[number];
    const Spec keys = changed_rows(step, true);
    if (!keys.is_null() && step.is_optional()) add_match_terms(number, output, plan);
    const Spec rows = keys.is_null() ? changed_rows(step, false) : keys;
    if (rows.is_null()) return false;
    plan.terms.push_back(keys.is_null() ? affected_term(number, rows, output) : crossing_term(number, keys, output));
    for (const Scan& scan : step.inner) plan.terms.back().unions.push_back(scan.set);
    return true;
}

bool Chain::add_terms(const Spec& output, DeltaPlan& plan) const {
    if (!sound_) return false;
    plan.computed.insert(plan.computed.end(), extended_.begin(), extended_.end());
    if (construct_ != nullptr && !extended_.empty())
        for (const Spec& slot : output.as_list()) plan.computed.push_back(static_cast<Slot>(slot.as_int()));
    for (std::size_t i = 0; i < scans_.size(); ++i) add_scan_term(i, output, plan);
    for (std::size_t i = 0; i < steps_.size(); ++i)
        if (steps_[i].is_test() && !add_test_terms(i, output, plan)) return false;
    return placed_;
}

}  // namespace penstock::exec::delta
