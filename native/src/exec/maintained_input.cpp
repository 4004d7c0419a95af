#include "exec/maintained_input.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "exec/compiler.hpp"
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

MaintainedInput::MaintainedInput(const Spec& input, const std::vector<Slot>& slots, std::size_t first,
                                 Compiler& compiler)
    : first_(first),
      end_(compiler.profile_ids().size()),
      plan_(delta_plan(input, compiler.seed().slots, slots)),
      windows_(plan_.windows.size()) {
    for (std::size_t i = 0; i < windows_.size(); ++i) windows_[i].source = plan_.windows[i];
    for (const DeltaTerm& term : plan_.terms) {
        Term made{compiler.node(term.node), nullptr, term.windows};
        if (!term.before.is_null()) made.before = compiler.node(term.before);
        terms_.push_back(std::move(made));
    }
}

MaintainedInput::~MaintainedInput() = default;

bool MaintainedInput::wants_state(const Run& run) {
    if (terms_.empty() || run.forker != nullptr || cost_ < Maintenance::from.load(std::memory_order_relaxed))
        return false;
    if (pause_ == 0) return true;
    --pause_;
    return false;
}

void MaintainedInput::evaluated(const Run& run) {
    cost_ = std::accumulate(run.produced.begin() + static_cast<std::ptrdiff_t>(first_),
                            run.produced.begin() + static_cast<std::ptrdiff_t>(end_), std::uint64_t{0});
}

bool MaintainedInput::can_update(Run& run) {
    if (!std::exchange(retained_, false)) return false;
    if (run.forker == nullptr && seed_ == run.seed.columns && find_changes(run)) {
        unused_ = 0;
        Maintenance::updates.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    ++unused_;
    pause_ = unused_ < kPatience ? 0 : 1u << std::min(unused_ - kPatience + 1, kLongestPauseBits);
    return false;
}

bool MaintainedInput::find_changes(const Run& run) {
    const std::uint64_t from = Maintenance::from.load(std::memory_order_relaxed);
    if (from == Maintenance::kNever) return false;
    std::uint64_t edges = 0;
    for (Window& window : windows_) {
        const auto* source = changing(run, window.source);
        const std::uint64_t version = source == nullptr ? 0 : source->version();
        if (version == 0) return false;
        window.changes = nullptr;
        if (version == window.seen) continue;
        const EdgeChanges* changes = source->changes();
        if (changes == nullptr || changes->from != window.seen || changes->to != version) return false;
        if (changes->sweeps != dictionary_sweeps()) return false;
        window.changes = changes;
        edges += changes->added.size() + changes->removed.size();
    }
    return from == 0 || edges * kCostOfChange <= cost_;
}

bool MaintainedInput::changed(const Term& term) const {
    return std::any_of(term.windows.begin(), term.windows.end(), [this](std::size_t source) {
        return std::any_of(windows_.begin(), windows_.end(),
                           [&](const Window& w) { return w.source == source && w.changes != nullptr; });
    });
}

/// Runs a term whose `changed` sources are one of the lists of each window.
void MaintainedInput::pass(Run& run, Operator& node, Sink& out, EdgeList Window::* changed) {
    for (Window& window : windows_) sources_[plan_.sources.changed(window.source)] = &(window.*changed);
    Run inner(run.seed, sources_, run.labels, run.expressions, run.profiler, nullptr, kFirstNumber + ++runs_,
              run.produced);
    node.run(inner, out);
}

void MaintainedInput::run_changes(Run& run, Sink& out, int& sign) {
    if (run.lookup_memo != nullptr) run.lookup_memo->abandon();
    sources_.assign(3 * plan_.sources.count, nullptr);
    std::copy_n(run.sources.begin(), std::min(run.sources.size(), plan_.sources.count), sources_.begin());
    for (Window& window : windows_) {
        const Source*& before = sources_[plan_.sources.before(window.source)];
        before = sources_[window.source];
        window.added.assign({});
        window.removed.assign({});
        window.both.assign({});
        if (window.changes == nullptr) continue;
        window.added.assign(window.changes->added);
        window.removed.assign(window.changes->removed);
        window.both.assign(window.changes->added, window.changes->removed);
        window.before.assign(*sources_[window.source], window.added, window.removed);
        before = &window.before;
    }
    for (const Term& term : terms_) {
        if (!changed(term)) continue;
        const bool test = term.before != nullptr;
        sign = 1;
        pass(run, *term.node, out, test ? &Window::both : &Window::added);
        sign = -1;
        pass(run, test ? *term.before : *term.node, out, test ? &Window::both : &Window::removed);
    }
    sign = 1;
}

void MaintainedInput::keep(const Run& run) {
    for (Window& window : windows_) {
        const auto* source = changing(run, window.source);
        if (source == nullptr) return;
        window.seen = source->version();
        source->changes();  // requests that the next change is recorded
    }
    if (seed_ != run.seed.columns) seed_ = run.seed.columns;
    retained_ = true;
}

bool MaintainedInput::computes(Slot slot) const {
    return std::find(plan_.computed.begin(), plan_.computed.end(), slot) != plan_.computed.end();
}

}  // namespace penstock::exec
