#include "exec/maintained_input.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "exec/compiler.hpp"
#include "exec/indexed_seed.hpp"
#include "exec/maintenance.hpp"
#include "rdf/sweeps.hpp"

namespace penstock::exec {

namespace {
constexpr std::uint32_t kLongestPauseBits = 4;
constexpr std::uint32_t kPatience = 3;  // states that may be lost before the next ones are retained less often
// A changed edge costs about as much as this many rows of a new evaluation: it is looked up and hashed twice.
constexpr std::uint64_t kCostOfChange = 4;
// Runs of terms have numbers that no other run has, because operators identify by them data of other sources.
constexpr std::uint64_t kFirstNumber = std::uint64_t{1} << 63;

const ChangingSource* changing(const Run& run, std::size_t source) {
    return source < run.sources.size() ? dynamic_cast<const ChangingSource*>(run.sources[source]) : nullptr;
}
}  // namespace

MaintainedInput::MaintainedInput(std::uint32_t id, const Spec& input, const std::vector<Slot>& slots, std::size_t first,
                                 Compiler& compiler, bool lasting)
    : id_(id), first_(first), end_(compiler.profile_ids().size()) {
    if (lasting) plan_ = delta_plan(input, compiler.seed().slots, slots);
    for (const DeltaTerm& term : plan_.terms) {
        Term made{compiler.node(term.node), nullptr, term.unions, term.crossing};
        if (!term.before.is_null()) made.before = compiler.node(term.before);
        terms_.push_back(std::move(made));
    }
    terms_end_ = compiler.profile_ids().size();
    std::vector<std::size_t> sources;
    for (const DeltaUnion& set : plan_.unions) sources.insert(sources.end(), set.sources.begin(), set.sources.end());
    std::sort(sources.begin(), sources.end());
    sources.erase(std::unique(sources.begin(), sources.end()), sources.end());
    parts_ = std::vector<Part>(sources.size());
    for (std::size_t i = 0; i < sources.size(); ++i) parts_[i].source = sources[i];
    unions_ = std::vector<Union>(plan_.unions.size());
    for (std::size_t i = 0; i < unions_.size(); ++i)
        for (const std::size_t source : plan_.unions[i].sources)
            unions_[i].parts.push_back(&*std::ranges::find(parts_, source, &Part::source));
    if (terms_.empty()) next_ = Outcome::Unsupported;
}

MaintainedInput::~MaintainedInput() {
    if (totals_ != nullptr) totals_->state_bytes.fetch_sub(counted_bytes_, std::memory_order_relaxed);
}

std::uint64_t MaintainedInput::rows_of(const Run& run, std::size_t first, std::size_t end) {
    return std::accumulate(run.produced.begin() + static_cast<std::ptrdiff_t>(first),
                           run.produced.begin() + static_cast<std::ptrdiff_t>(end), std::uint64_t{0});
}

bool MaintainedInput::wants_state(const Run& run) {
    next_ = Outcome::Unsupported;
    if (terms_.empty() || run.forker != nullptr) return false;
    // Without windows it is a one-shot query, whose next run may be long after this one.
    if (run.sources.size() < 2) return false;
    if (reads_stored() && dynamic_cast<const SnapshotSource*>(run.sources[0]) == nullptr) return false;
    next_ = Outcome::SmallInput;
    if (cost_ < Maintenance::from.load(std::memory_order_relaxed)) return false;
    next_ = Outcome::Paused;
    if (pause_ != 0) {
        --pause_;
        return false;
    }
    next_ = Outcome::NoState;
    return true;
}

void MaintainedInput::evaluated(const Run& run) {
    updates_ = false;
    cost_ = rows_of(run, first_, end_);
    // The next run has no state because the input was small in the last one.
    const bool small = cost_ < Maintenance::from.load(std::memory_order_relaxed);
    if (next_ == Outcome::SmallInput && !small) next_ = Outcome::NoState;
}

/// The state of this run could not be updated, or not at less cost than a new evaluation.
void MaintainedInput::lose() {
    ++unused_;
    pause_ = unused_ < kPatience ? 0 : 1u << std::min(unused_ - kPatience + 1, kLongestPauseBits);
}

bool MaintainedInput::can_update(Run& run) {
    updates_ = false;
    begin();
    if (!std::exchange(retained_, false)) return false;
    outcome_ = Outcome::OtherMembers;
    if (run.forker == nullptr && same_seed(run) && find_changes(run)) {
        Maintenance::updates.fetch_add(1, std::memory_order_relaxed);
        outcome_ = Outcome::Updated;
        updates_ = true;
        return true;
    }
    stored_ = nullptr;
    stored_before_ = nullptr;
    lose();
    return false;
}

/// An indexed seed never changes, so its number identifies it.
bool MaintainedInput::same_seed(const Run& run) const {
    if (run.indexed_seed != nullptr) return seed_number_ == run.indexed_seed->number();
    return seed_number_ == 0 && seed_ == run.seed.columns;
}

void MaintainedInput::keep_seed(const Run& run) {
    if (same_seed(run)) return;
    seed_number_ = run.indexed_seed != nullptr ? run.indexed_seed->number() : 0;
    seed_.clear();
    if (seed_number_ == 0) seed_ = run.seed.columns;
}

bool MaintainedInput::find_changes(const Run& run) {
    const std::uint64_t from = Maintenance::from.load(std::memory_order_relaxed);
    outcome_ = Outcome::NoState;
    if (from == Maintenance::kNever) return false;
    outcome_ = Outcome::UnknownChange;
    const std::uint64_t most = from == 0 ? std::numeric_limits<std::uint64_t>::max() : cost_ / kCostOfChange;
    std::uint64_t edges = 0;
    for (Part& part : parts_) {
        part.changes = nullptr;
        if (!(part.source == 0 ? find_stored_changes(run, part, most) : find_window_changes(run, part))) return false;
        if (part.changes != nullptr) edges += part.changes->added.size() + part.changes->removed.size();
        if (edges > most) {
            outcome_ = Outcome::LargeChange;
            return false;
        }
    }
    return true;
}

bool MaintainedInput::find_window_changes(const Run& run, Part& window) {
    const auto* source = changing(run, window.source);
    const std::uint64_t version = source == nullptr ? 0 : source->version();
    if (version == 0) return false;
    if (version == window.seen) return true;
    const EdgeChanges* changes = source->changes();
    if (changes == nullptr || changes->from != window.seen || changes->to != version) return false;
    if (changes->sweeps != dictionary_sweeps()) return false;
    window.changes = changes;
    return true;
}

bool MaintainedInput::find_stored_changes(const Run& run, Part& stored, std::size_t limit) {
    const auto* now = dynamic_cast<const SnapshotSource*>(run.sources[0]);
    stored_before_ = stored_ == nullptr ? nullptr : stored_->get();
    if (now == nullptr || stored_before_ == nullptr) return false;
    std::vector<Label> labels;
    for (const DeltaUnion& set : plan_.unions) {
        if (set.sources.front() != 0) continue;
        for (const TermId predicate : set.predicates) run.labels.with_predicate(predicate, labels);
    }
    std::sort(labels.begin(), labels.end());
    if (!now->changes_since(*stored_before_, labels, limit, stored_changes_)) return false;
    if (!stored_changes_.added.empty() || !stored_changes_.removed.empty()) stored.changes = &stored_changes_;
    return true;
}

bool MaintainedInput::changed(const Term& term) const {
    return std::ranges::any_of(term.unions, [this](std::size_t number) { return unions_[number].changed; });
}

/// Runs a term whose `changed` sources are one of the lists of each union.
void MaintainedInput::pass(Run& run, Operator& node, Sink& out, EdgeList Union::* changed) {
    for (std::size_t i = 0; i < unions_.size(); ++i) sources_[plan_.sources.changed(i)] = &(unions_[i].*changed);
    Run inner(run.seed, sources_, run.labels, run.expressions, run.profiler, nullptr, kFirstNumber + ++runs_,
              run.produced);
    inner.indexed_seed = run.indexed_seed;
    node.run(inner, out);
}

/// Makes the previous contents and the changes readable as sources.
void MaintainedInput::prepare(const Run& run) {
    sources_.assign(2 * plan_.sources.count + unions_.size(), nullptr);
    std::copy_n(run.sources.begin(), std::min(run.sources.size(), plan_.sources.count), sources_.begin());
    for (Part& part : parts_) {
        part.before = sources_[part.source];
        part.added.assign({});
        part.removed.assign({});
        if (part.changes != nullptr) {
            part.added.assign(part.changes->added);
            part.removed.assign(part.changes->removed);
            part.previous.assign(*sources_[part.source], part.added, part.removed);
            part.before = part.source == 0 ? stored_before_.get() : &part.previous;
        }
        sources_[plan_.sources.before(part.source)] = part.before;
    }
    for (std::size_t i = 0; i < unions_.size(); ++i) combine(run, i);
}

void MaintainedInput::combine(const Run& run, std::size_t number) {
    Union& set = unions_[number];
    set.changed = std::ranges::any_of(set.parts, [](const Part* part) { return part->changes != nullptr; });
    const EdgeChanges* single = set.parts.size() == 1 ? set.parts.front()->changes : nullptr;
    std::span<const LabelledEdge> added, removed;
    if (single != nullptr) {
        added = single->added;
        removed = single->removed;
    } else if (set.changed) {
        const DeltaUnion& plan = plan_.unions[number];
        std::vector<Label> labels;
        for (const TermId predicate : plan.predicates) labels.push_back(run.labels.find(0, predicate));
        std::vector<LabelledEdge> edges;
        for (const Part* part : set.parts) {
            if (part->changes == nullptr) continue;
            for (const auto* list : {&part->changes->added, &part->changes->removed})
                for (const LabelledEdge& edge : *list)
                    if (plan.any_predicate || std::ranges::find(labels, edge.label) != labels.end())
                        edges.push_back(edge);
        }
        compare(set, edges, set.edges_added, set.edges_removed);
        added = set.edges_added;
        removed = set.edges_removed;
    }
    set.added.assign(added);
    set.removed.assign(removed);
    set.both.assign(added, removed);
}

/// Finds which of the edges the union has gained, and which it has lost.
void MaintainedInput::compare(const Union& set, std::vector<LabelledEdge>& edges, std::vector<LabelledEdge>& added,
                              std::vector<LabelledEdge>& removed) const {
    const auto key = [](const LabelledEdge& edge) { return std::tie(edge.label, edge.s, edge.o); };
    std::ranges::sort(edges, {}, key);
    edges.erase(std::ranges::unique(edges, {}, key).begin(), edges.end());
    added.clear();
    removed.clear();
    std::vector<TermId> subjects, objects;
    std::vector<std::uint8_t> now, before;
    for (std::size_t first = 0; first < edges.size(); first += subjects.size()) {
        const Label label = edges[first].label;
        subjects.clear();
        objects.clear();
        for (std::size_t i = first; i < edges.size() && edges[i].label == label; ++i) {
            subjects.push_back(edges[i].s);
            objects.push_back(edges[i].o);
        }
        now.assign(subjects.size(), 0);
        before.assign(subjects.size(), 0);
        for (const Part* part : set.parts) {
            sources_[part->source]->contains(subjects, label, objects, now);
            part->before->contains(subjects, label, objects, before);
        }
        for (std::size_t i = 0; i < subjects.size(); ++i)
            if (now[i] != before[i]) (now[i] != 0 ? added : removed).push_back(edges[first + i]);
    }
}

void MaintainedInput::run_changes(Run& run, Sink& out, int& sign) {
    if (run.lookup_memo != nullptr) run.lookup_memo->abandon();
    prepare(run);
    const std::uint64_t before = out.pushed();
    for (const Term& term : terms_) {
        if (!changed(term)) continue;
        const bool test = term.before != nullptr;
        const bool both = test && term.crossing == DeltaTerm::Crossing::No;
        const bool lost = term.crossing == DeltaTerm::Crossing::Lost;
        sign = 1;
        pass(run, *term.node, out, both ? &Union::both : lost ? &Union::removed : &Union::added);
        sign = -1;
        pass(run, test ? *term.before : *term.node, out, both ? &Union::both : lost ? &Union::added : &Union::removed);
    }
    sign = 1;
    changed_rows_ = out.pushed() - before;
    stored_before_ = nullptr;
}

void MaintainedInput::keep(const Run& run) {
    if (updates_) {
        const bool dear =
            Maintenance::from.load(std::memory_order_relaxed) != 0 && rows_of(run, end_, terms_end_) > cost_;
        if (dear) {
            next_ = Outcome::DearUpdate;
            return lose();
        }
        unused_ = 0;
    }
    for (Part& part : parts_) {
        if (part.source == 0) {
            const auto* stored = dynamic_cast<const SnapshotSource*>(run.sources[0]);
            if (stored == nullptr) return;
            stored_ = stored->retain();
            continue;
        }
        const auto* source = changing(run, part.source);
        if (source == nullptr) return;
        part.seen = source->version();
        source->changes();  // requests that the next change is recorded
    }
    keep_seed(run);
    retained_ = true;
}

void MaintainedInput::report(Run& run, std::size_t state_bytes) {
    if (run.report == nullptr || run.sources.size() < 2) return;
    const bool updated = outcome_ == Outcome::Updated;
    run.report->figures.push_back({id_, outcome_, updated ? changed_rows_ : 0, state_bytes});
    if (totals_ != run.report->totals) {
        if (totals_ != nullptr) totals_->state_bytes.fetch_sub(counted_bytes_, std::memory_order_relaxed);
        counted_bytes_ = 0;
        totals_ = run.report->totals;
    }
    if (totals_ == nullptr) return;
    (updated ? totals_->updated : totals_->complete).fetch_add(1, std::memory_order_relaxed);
    if (state_bytes == counted_bytes_) return;
    totals_->state_bytes.fetch_add(state_bytes - counted_bytes_, std::memory_order_relaxed);  // modulo 2^64
    counted_bytes_ = state_bytes;
}

bool MaintainedInput::computes(Slot slot) const {
    return std::find(plan_.computed.begin(), plan_.computed.end(), slot) != plan_.computed.end();
}

}  // namespace penstock::exec
