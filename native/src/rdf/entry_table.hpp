// Maps slots to entries of the dictionary. Segments never move, so readers find the text of an id without a lock.
//
// Memory ordering. A writer holds the dictionary's lock. It fills a record, then publishes it by a release store to
// Entry::record. It fills a new segment with empty entries, then publishes it by a release store into the directory.
// Readers load both pointers with acquire. A reader that sees a pointer therefore sees the text or the entries behind
// this pointer. Ids pass between threads through channels (queues, snapshots) that establish ordering themselves, so a
// reader that holds an id finds its record. A sweep clears the pointer and reuses the memory, but only for entries that
// no lease covers. Leases are acquired and released under the dictionary's lock, so every read under a lease happens
// before the sweep that frees the entry. Entry::use is only a hint of age, and the dictionary's lock provides all
// ordering. Relaxed operations on Entry::use therefore suffice.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "errors.hpp"
#include "rdf/dictionary.hpp"
#include "rdf/term_record.hpp"

namespace penstock {

struct Entry {
    std::atomic<const TermRecord*> record{nullptr};
    std::atomic<std::uint64_t> use{0};  // bits: literal (63), last tick, permanent (0)

    static constexpr std::uint64_t kPermanent = 1;
    static constexpr std::uint64_t kLiteral = std::uint64_t{1} << 63;  // allows checking an id without its record
    static constexpr Tick tick_of(std::uint64_t use) { return (use & ~kLiteral) >> 1; }

    bool names(Tag tag) const {
        const bool literal = (use.load(std::memory_order_relaxed) & kLiteral) != 0;
        return record.load(std::memory_order_relaxed) != nullptr && literal == (tag == Tag::Literal);
    }

    /// Sets the last use to `now`. Does nothing if it is already `now`, or if the entry is permanent. Returns whether
    /// the entry is permanent.
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
        for (const std::size_t segment : made_) std::free(directory_[segment].load(std::memory_order_relaxed));
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
        void* memory = std::aligned_alloc(kPageBytes, kSegmentBytes);
        if (memory == nullptr) throw std::bad_alloc();
        auto* entries = static_cast<Entry*>(memory);
        // Without pages, the memory reads as zeros, which is the content of empty entries.
        if (!release(entries, kSegmentBytes)) std::uninitialized_value_construct_n(entries, kSegmentEntries);
        made_.push_back(segment);
        directory_[segment].store(entries, std::memory_order_release);
    }

    // The following functions are for slots that are never reused, such as the source's slots in a partial dictionary.
    // When the last entry of a page is freed, the page returns to the system. The page then reads as zeros, so readers
    // without the lock see no difference. The dictionary's lock must be held.
    /// Counts an entry that was filled.
    void filled(std::uint32_t slot) {
        const std::size_t page = slot / kPageEntries;
        if (page >= used_.size()) used_.resize(page + 1);
        if (used_[page]++ == 0) ++pages_;
    }
    /// Counts an entry that was emptied. Releases the page if no other entry of the page is left.
    void emptied(std::uint32_t slot) {
        const std::size_t page = slot / kPageEntries;
        if (--used_[page] != 0) return;
        --pages_;
        release(find(page * kPageEntries), kPageBytes);
    }
    /// Resident memory. Segments have all pages unless their entries are counted.
    std::size_t bytes() const {
        const std::size_t counted = (used_.size() + kSegmentPages - 1) / kSegmentPages;
        const std::size_t whole = made_.size() > counted ? made_.size() - counted : 0;
        return whole * kSegmentBytes + pages_ * kPageBytes + made_.size() * 2 * sizeof(void*) +
               used_.capacity() * sizeof(std::uint16_t);
    }

private:
    static constexpr std::size_t kPageBytes = 4096;
    static constexpr std::size_t kSegmentBytes = kSegmentEntries * sizeof(Entry);
    static constexpr std::size_t kPageEntries = kPageBytes / sizeof(Entry);
    static constexpr std::size_t kSegmentPages = kSegmentBytes / kPageBytes;
    static_assert(kSegmentBytes % kPageBytes == 0 && kPageBytes % sizeof(Entry) == 0);
    static constexpr std::size_t kDirectoryBytes = kMaxSegments * sizeof(std::atomic<Entry*>);

    std::atomic<Entry*>* directory_;   // from mmap: zeroed by the system, and only used pages are resident
    std::vector<std::size_t> made_;    // segments that exist
    std::vector<std::uint16_t> used_;  // by page: the number of its entries, as counted
    std::size_t pages_ = 0;            // the number of pages with such entries

    static bool release(Entry* entries, std::size_t bytes) { return ::madvise(entries, bytes, MADV_DONTNEED) == 0; }
};

}  // namespace penstock
