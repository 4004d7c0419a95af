// The entries for one list in the append logs that its shard publishes (store/log_ring.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "errors.hpp"
#include "remote/shard_memory.hpp"
#include "store/append_log.hpp"
#include "store/layout.hpp"
#include "store/visibility.hpp"

namespace penstock::remote {

/// `Logs` of visible_ranges(). A missing entry reads as "no earlier commit".
class ListLogs {
public:
    ListLogs(const ShardMemory& memory, layout::Offset entry, ListVersion version)
        : memory_(memory), entry_(entry), version_(version) {}

    layout::Append append(Snapshot snapshot) const {
        const layout::Append found = logged(snapshot);
        rewritten_later_ |= snapshot > version_.commit && found.shift > 0;
        return version_.translate(snapshot, found);
    }
    /// Whether a requested commit has rewritten the list, and the view has not read the new head of the list.
    bool rewritten_later() const { return rewritten_later_; }
    void reasserted(Snapshot snapshot, std::vector<std::uint32_t>& positions) const {
        const layout::CommitEntry commit = this->commit(snapshot);
        if (commit.reasserted == 0) return;
        const auto& all = memory_.first_of<layout::Reassertion>(commit.log + commit.slots * sizeof(layout::Append),
                                                                commit.reasserted);
        if (memory_.missing()) return;
        for (const layout::Reassertion& again : std::span(&all, commit.reasserted))
            if (again.entry == entry_) version_.translate(snapshot, again.position, positions);
    }

private:
    static constexpr std::uint64_t kProbed = 8;  // slots of a log that are read together

    layout::Append logged(Snapshot snapshot) const {
        const layout::CommitEntry commit = this->commit(snapshot);
        if (commit.slots == 0) return {};
        for (std::uint64_t slot = AppendLog::first_slot(entry_, commit.slots);;
             slot = slot + 1 == commit.slots ? 0 : slot + 1) {
            const auto& found = memory_.first_of<layout::Append>(commit.log + slot * sizeof(layout::Append),
                                                                 std::min(kProbed, commit.slots - slot));
            if (memory_.missing() || found.entry == entry_) return found;
            if (found.entry == 0) throw StorageError("a commit's log lacks a list that it changed");
        }
    }
    layout::CommitEntry commit(Snapshot snapshot) const {
        using layout::CommitEntry;
        using layout::CommitRing;
        const std::uint64_t known = memory_.at<layout::Header>(0).commits;
        if (known != 0) {
            const auto& entry = memory_.at<CommitEntry>(CommitRing::entry_at(known, snapshot));
            if (memory_.missing() || entry.snapshot == snapshot) return entry;
        }
        // The ring has grown since the view was created.
        const std::uint64_t now = memory_.word_now(offsetof(layout::Header, commits));
        if (memory_.missing() || now == 0) return {};
        const auto& entry = memory_.at<CommitEntry>(CommitRing::entry_at(now, snapshot));
        if (!memory_.missing() && entry.snapshot != snapshot)
            throw StorageError("commit " + std::to_string(snapshot) + " has no log any more");
        return entry;
    }
    const ShardMemory& memory_;
    layout::Offset entry_;
    ListVersion version_;
    mutable bool rewritten_later_ = false;
};

}  // namespace penstock::remote
