#include "store/change_log.hpp"

#include <algorithm>
#include <utility>

namespace penstock {

class ChangeLog::View final : public SnapshotSource::Retained {
public:
    View(std::shared_ptr<const Source> view, Snapshot snapshot) : snapshot_(snapshot), view_(std::move(view)) {}
    std::shared_ptr<const Source> get() const override {
        std::scoped_lock lock(mutex_);
        return view_;
    }
    void release() {
        std::scoped_lock lock(mutex_);
        view_ = nullptr;
    }
    Snapshot snapshot() const { return snapshot_; }

private:
    const Snapshot snapshot_;
    mutable std::mutex mutex_;  // guards view_
    std::shared_ptr<const Source> view_;
};

ChangeLog::~ChangeLog() {
    for (const auto& weak : views_)
        if (const auto view = weak.lock()) view->release();
}

/// Drops the commits up to this one, and the views that would need them.
void ChangeLog::forget_until(Snapshot commit) {
    while (!commits_.empty() && commits_.front().number <= commit) {
        edges_ -= commits_.front().edges.size();
        commits_.pop_front();
    }
    first_ = std::max(first_, commit + 1);
    std::erase_if(views_, [this](const std::weak_ptr<View>& weak) {
        const auto view = weak.lock();
        if (view && view->snapshot() + 1 >= first_) return false;
        if (view) view->release();
        return true;
    });
}

void ChangeLog::add(Snapshot commit, std::span<const Edge> added, std::span<const Edge> removed) {
    std::scoped_lock lock(mutex_);
    last_ = commit;
    if (!recording_) return;
    std::erase_if(views_, [](const std::weak_ptr<View>& weak) { return weak.expired(); });
    const std::size_t count = added.size() + removed.size();
    recording_ = !views_.empty();
    if (!recording_ || count > kEdges) return forget_until(commit);
    std::vector<LabelledEdge> edges;
    edges.reserve(count);
    for (const auto& some : {added, removed})
        for (const Edge& edge : some) edges.push_back({edge.label, edge.subject, edge.object});
    edges_ += count;
    commits_.push_back({commit, std::move(edges)});
    while (edges_ > kEdges || commits_.size() > kCommits) forget_until(commits_.front().number);
}

void ChangeLog::add_unknown(Snapshot commit) {
    std::scoped_lock lock(mutex_);
    last_ = commit;
    forget_until(commit);
}

std::shared_ptr<SnapshotSource::Retained> ChangeLog::retain(std::shared_ptr<const Source> view, Snapshot snapshot) {
    std::scoped_lock lock(mutex_);
    if (!std::exchange(recording_, true)) first_ = last_ + 1;
    if (snapshot + 1 < first_) return nullptr;
    auto made = std::make_shared<View>(std::move(view), snapshot);
    views_.push_back(made);
    return made;
}

bool ChangeLog::append(Snapshot commit, std::span<const Label> labels, std::size_t limit,
                       std::vector<LabelledEdge>& out) const {
    const auto found = std::ranges::lower_bound(commits_, commit, {}, &Commit::number);
    if (found == commits_.end() || found->number != commit) return true;  // it touched nothing
    for (const LabelledEdge& edge : found->edges)
        if (std::ranges::binary_search(labels, edge.label)) out.push_back(edge);
    return out.size() <= limit;
}

bool ChangeLog::touched(const Visibility& before, const Visibility& now, std::span<const Label> labels,
                        std::size_t limit, std::vector<LabelledEdge>& out) const {
    const auto hidden_now = [&](Snapshot commit) { return !before.excludes(commit); };
    if (now.snapshot < before.snapshot || std::ranges::any_of(now.excluded, hidden_now)) return false;
    std::scoped_lock lock(mutex_);
    if (before.snapshot + 1 < first_) return false;
    for (const Snapshot commit : before.excluded) {
        if (now.excludes(commit)) continue;
        if (commit < first_ || !append(commit, labels, limit, out)) return false;
    }
    for (Snapshot commit = before.snapshot + 1; commit <= now.snapshot; ++commit)
        if (!now.excludes(commit) && !append(commit, labels, limit, out)) return false;
    return true;
}

}  // namespace penstock
