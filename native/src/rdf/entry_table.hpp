// Maps slots to entries of the dictionary. Segments never move, so readers find the text of an id without a lock.
//
// Memory ordering. A writer holds the dictionary's lock. It fills a record, then publishes it by a release store to
// Entry::record. It fills a new segment with empty entries, then publishes it by a release store into the directory.
// Readers load both with acquire; a reader that sees the pointer therefore sees the text or the entries behind it. Ids
// pass between threads through channels (queues, snapshots) that establish ordering themselves, so a reader that holds
// an id finds its record. A sweep clears the pointer and reuses the memory, but only for entries that no lease covers.
// Leases are acquired and released under the dictionary's lock, so every read under a lease happens before the sweep
// that frees the entry. Entry::use is only a hint of age, and that lock provides all ordering; relaxed operations
// suffice.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"
#include "rdf/term_record.hpp"

namespace penstock {

struct Entry {
    std::atomic<const TermRecord*> record{nullptr};
    std::atomic<std::uint64_t> use{0};  // literal (bit 63) | last tick | permanent (bit 0)

    static constexpr std::uint64_t kPermanent = 1;
    static constexpr std::uint64_t kLiteral = std::uint64_t{1} << 63;  // allows checking an id without its record
    static constexpr Tick tick_of(std::uint64_t use) { return (use & ~kLiteral) >> 1; }

    bool names(Tag tag) const {
        const bool literal = (use.load(std::memory_order_relaxed) & kLiteral) != 0;
        return record.load(std::memory_order_relaxed) != nullptr && literal == (tag == Tag::Literal);
    }

    /// Sets last use to `now`, unless it already is or the entry is permanent. Returns whether the entry is permanent.
    bool touch(Tick now) {
        std::uint64_t seen = use.load(std::memory_order_relaxed);
        while ((seen & kPermanent) == 0 && tick_of(seen) < now &&
               !use.compare_exchange_weak(seen, (now << 1) | (seen & kLiteral), std::memory_order_relaxed)) {
        }
        return (seen & kPermanent) != 0;
    }
    void keep() {
        if ((use.load(std::memory_order_relaxed) & kPermanent) == 0)
            use.fetch_or(kPermanent, std::memory_order_relaxed);
    }
};

class EntryTable {
public:
    static constexpr std::size_t kSegmentEntries = std::size_t{1} << 12;
    static constexpr std::size_t kMaxSegments = std::size_t{1} << 20;  // slots are 32 bits

    EntryTable() {
        void* pages = ::mmap(nullptr, kDirectoryBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (pages == MAP_FAILED) throw std::bad_alloc();
        directory_ = static_cast<std::atomic<Entry*>*>(pages);
    }
    ~EntryTable() {
        for (const std::size_t segment : made_) delete[] directory_[segment].load(std::memory_order_relaxed);
        ::munmap(directory_, kDirectoryBytes);
    }
    EntryTable(const EntryTable&) = delete;
    EntryTable& operator=(const EntryTable&) = delete;

    /// The entry of a slot; nullptr if the slot was never created. Lock-free.
    Entry* find(std::uint64_t slot) const {
        const std::uint64_t segment = slot / kSegmentEntries;
        if (segment >= kMaxSegments) return nullptr;
        Entry* entries = directory_[segment].load(std::memory_order_acquire);
        return entries == nullptr ? nullptr : entries + slot % kSegmentEntries;
    }
    /// For slots that exist.
    Entry& operator[](std::uint32_t slot) const {
        return directory_[slot / kSegmentEntries].load(std::memory_order_acquire)[slot % kSegmentEntries];
    }
    void prefetch(std::uint64_t slot) const { __builtin_prefetch(find(slot), 1); }

    /// Ensures that `slot` exists. Creates its segment only, because slots of a partial dictionary are scattered. The
    /// dictionary's lock must be held. LimitError after 2^32 terms.
    void reach(std::uint64_t slot) {
        const std::uint64_t segment = slot / kSegmentEntries;
        if (segment >= kMaxSegments) throw LimitError("the dictionary is full: 2^32 terms");
        if (directory_[segment].load(std::memory_order_relaxed) != nullptr) return;
        made_.push_back(segment);
        directory_[segment].store(new Entry[kSegmentEntries], std::memory_order_release);
    }
    std::size_t bytes() const { return made_.size() * (kSegmentEntries * sizeof(Entry) + 2 * sizeof(void*)); }

private:
    static constexpr std::size_t kDirectoryBytes = kMaxSegments * sizeof(std::atomic<Entry*>);

    std::atomic<Entry*>* directory_;  // mmap: zeroed by the system, and only pages in use are resident
    std::vector<std::size_t> made_;   // segments that exist
};

}  // namespace penstock
