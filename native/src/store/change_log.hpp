// The edges that recent commits touched, for operators that update their state from the changes of the stored graph
// (ADR 81).
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "changing_source.hpp"
#include "store/commit.hpp"
#include "store/visibility.hpp"

namespace penstock {

/// Records commits only while an operator retains a view. It owns the retained views. It releases a view that is older
/// than the recorded commits, and all views when the store ends. Thread-safe.
class ChangeLog {
public:
    ChangeLog() = default;
    ~ChangeLog();
    ChangeLog(const ChangeLog&) = delete;
    ChangeLog& operator=(const ChangeLog&) = delete;

    /// Called before the commit is published. It is allowed that the addition or removal of an edge changes nothing.
    void add(Snapshot commit, std::span<const Edge> added, std::span<const Edge> removed = {});
    /// Called before a commit is published whose edges are not known.
    void add_unknown(Snapshot commit);
    std::shared_ptr<SnapshotSource::Retained> retain(std::shared_ptr<const Source> view, Snapshot snapshot);
    /// Appends the edges of the labels (ascending) that were touched by commits that `now` sees, but `before` does not
    /// see. An edge can be appended several times. Returns false if such a commit is not recorded, if `before` sees a
    /// commit that `now` does not see, or if there are more than `limit` edges.
    bool touched(const Visibility& before, const Visibility& now, std::span<const Label> labels, std::size_t limit,
                 std::vector<LabelledEdge>& out) const;

private:
    class View;
    struct Commit {
        Snapshot number;
        std::vector<LabelledEdge> edges;
    };
    static constexpr std::size_t kEdges = std::size_t{1} << 16;  // of all commits
    static constexpr std::size_t kCommits = 4096;

    void forget_until(Snapshot commit);
    bool append(Snapshot commit, std::span<const Label> labels, std::size_t limit,
                std::vector<LabelledEdge>& out) const;

    mutable std::mutex mutex_;  // guards all members
    std::deque<Commit> commits_;
    std::size_t edges_ = 0;
    Snapshot first_ = 1;  // all commits from this one on are recorded, if `recording_`
    Snapshot last_ = 0;   // the last commit that was announced
    bool recording_ = false;
    std::vector<std::weak_ptr<View>> views_;
};

}  // namespace penstock
