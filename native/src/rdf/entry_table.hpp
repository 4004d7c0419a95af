// Slot -> entry of the dictionary, in segments that never move, so that readers go from an id to its text without a
// lock.
//
// Memory ordering. A writer (under the dictionary's lock) fills a record, then publishes it by a release store of
// Entry::record; a new segment is filled with empty entries, then published by a release store into the directory.
// Readers load both with acquire, so whoever sees the pointer sees the text behind it. Ids travel between threads by
// other means (queues, snapshots) that themselves order; a reader that holds an id made before hence finds its record.
// A sweep clears the pointer and gives the memory to other terms: it does so only for entries that no lease covers, and
// leases are taken and given back under the dictionary's lock, so every read of a leased reader happens before the
// sweep that ends the entry. Entry::use is only a hint of age next to that lock's order: relaxed operations suffice.
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
    std::atomic<std::uint64_t> use{0};  // a literal's (bit 63) | last tick | kept for ever (bit 0)

    static constexpr std::uint64_t kKept = 1;
    static constexpr std::uint64_t kLiteral = std::uint64_t{1} << 63;  // so that an id is checked without its record
    static constexpr Tick tick_of(std::uint64_t use) { return (use & ~kLiteral) >> 1; }

    bool names(Tag tag) const {
        const bool literal = (use.load(std::memory_order_relaxed) & kLiteral) != 0;
        return record.load(std::memory_order_relaxed) != nullptr && literal == (tag == Tag::Literal);
    }

    /// Last use = `now`, unless that is known already, or no longer counts: true where the entry is kept for ever.
    bool touch(Tick now) {
        std::uint64_t seen = use.load(std::memory_order_relaxed);
        while ((seen & kKept) == 0 && tick_of(seen) < now &&
               !use.compare_exchange_weak(seen, (now << 1) | (seen & kLiteral), std::memory_order_relaxed)) {
        }
        return (seen & kKept) != 0;
    }
    void keep() {
        if ((use.load(std::memory_order_relaxed) & kKept) == 0) use.fetch_or(kKept, std::memory_order_relaxed);
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

    /// The entry of a slot, or nullptr where no such slot was ever made. Lock-free.
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

    /// Makes sure that `slot` exists, and with it its segment only: those of a partial dictionary lie anywhere. Under
    /// the dictionary's lock. LimitError after 2^32 terms.
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

    std::atomic<Entry*>* directory_;  // mapped: zeroed by the system, and only the pages in use are ever resident
    std::vector<std::size_t> made_;   // segments that exist
};

}  // namespace penstock
