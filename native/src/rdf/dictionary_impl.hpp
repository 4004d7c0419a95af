// The members of Dictionary, shared by dictionary.cpp and dictionary_file.cpp.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "rdf/dictionary.hpp"
#include "rdf/entry_table.hpp"
#include "rdf/hash_cells.hpp"
#include "rdf/record_heap.hpp"
#include "rdf/term_record.hpp"

namespace penstock {

struct Dictionary::Impl {
    /// The index is partitioned, so that growth blocks the writer only for 1/256 of the index.
    static constexpr std::size_t kIndexParts = 256;
    static constexpr std::size_t kFirstArenaBytes = std::size_t{64} << 10;

    Impl();

    // ---- guarded by the mutex
    mutable std::mutex mutex;
    RecordHeap heap{kFirstArenaBytes};
    std::array<HashCells, kIndexParts> index;
    std::vector<std::uint32_t> free_slots;
    std::uint64_t next_slot = 1;
    std::map<Tick, std::vector<std::uint32_t>> ages;       // transient entries, by a tick at or before their last use
    std::map<Tick, std::size_t> leases;                    // number of leases that began at each tick
    std::unordered_map<std::uint32_t, TermId> superseded;  // private slots whose term also has an id of the source
    std::unordered_set<std::uint32_t> removable;           // slots that are not in the index (adopt_removable())

    /// The source of a partial dictionary. Set before the first use, or never.
    std::shared_ptr<TermSource> source;

    // ---- read without the mutex
    EntryTable entries;
    std::atomic<Tick> now{0};
    std::atomic<std::uint64_t> blanks{0};
    std::atomic<std::uint64_t> live{0};
    std::atomic<std::uint64_t> evaluations{0};  // counter that numbers the LocalTerms objects with blank nodes
    const std::uint64_t seed;

    /// Whether a slot belongs to the source. The source never gives such a slot to another term.
    bool is_sources(std::uint32_t slot) const { return source != nullptr && slot < kPrivateSlots; }
    HashCells& part(std::uint64_t hash) { return index[(hash >> 32) % kIndexParts]; }
    const TermRecord* record(std::uint32_t slot) const { return entries[slot].record.load(std::memory_order_relaxed); }
    /// The same for a slot that possibly does not exist.
    const TermRecord* record_at(std::uint64_t slot) const {
        const Entry* entry = entries.find(slot);
        return entry == nullptr ? nullptr : entry->record.load(std::memory_order_relaxed);
    }
    std::uint32_t lookup(const TermKey& key) {
        return part(key.hash).find(key.hash, [&](std::uint32_t slot) { return record(slot)->equals(key); });
    }
    bool names_something(TermId id) const;
    /// Calls visit(id) for each id, with the entries prefetched.
    template <class Visit>
    void each_ahead(const TermId* ids, std::size_t n, Visit visit) const;
    /// The id of the term. Marks the entry of the term as used, or creates an entry.
    TermId intern(const TermKey& key, Lifetime lifetime);
    TermId add(const TermKey& key, Lifetime lifetime);
    /// Creates a record and its index cell, for an empty slot that exists.
    void fill(std::uint32_t slot, const TermKey& key, std::uint64_t use, bool indexed = true);
    /// Adds a term under an id of the source; for partial dictionaries.
    void adopt(TermId id, const TermKey& key);
    void adopt_removable(TermId id, const TermKey& key);
    /// The slot of an id of the source. DataError if the id cannot be one of this term.
    static std::uint32_t source_slot(TermId id, const TermKey& key);
    /// Requests the ids of terms from the source, and adds the terms that the source knows. The mutex must not be held.
    std::vector<TermId> ask(std::span<const TermView> terms);
    std::uint32_t take_slot();
    void free(std::uint32_t slot);
    /// Examines at most `steps` transient entries. Returns false if none are left.
    bool sweep_some(Tick oldest_live, std::size_t steps, std::size_t& freed);
};

}  // namespace penstock
