// The bytes of a shard's region (docs/store-layout.md has a diagram). The writer, and all readers in this process, in
// other processes and on other nodes, use this layout. The region contains offsets and no pointers, so that each
// process can map it at any address.
//
// Rule for all structures here: a published byte never changes, except in the 8-byte words marked [word]. The writer
// stores a [word] with release order. A reader that loads it with acquire order sees all writes before that store.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "mix.hpp"
#include "source.hpp"
#include "store/commit.hpp"

namespace penstock::layout {

using Offset = std::uint64_t;  // in bytes from the region's start; 0 = none

inline constexpr std::uint64_t kMagic = 0x314B434F54534E50ull;
inline constexpr std::uint32_t kVersion = 3;
inline constexpr std::uint64_t kHeaderBytes = 4096;
inline constexpr std::uint64_t kMaxRegionBytes = std::uint64_t{1} << 43;  // the limit of a Directory's link

// ---- words

// All accesses to a [word] use these two functions. Each caller documents which writes its word publishes.
inline std::uint64_t load_acquire(const std::uint64_t& word) {
    return std::atomic_ref<std::uint64_t>(const_cast<std::uint64_t&>(word)).load(std::memory_order_acquire);
}
inline void store_release(std::uint64_t& word, std::uint64_t value) {
    std::atomic_ref<std::uint64_t>(word).store(value, std::memory_order_release);
}

// ---- lists

/// One neighbour list. `state` [word]: the last snapshot that changed it (high 32 bits) | length (low 32 bits). `head`
/// [word]: the value itself if the list has one value; otherwise Tag::Extent | offset of the first ListExtent, which
/// then holds *all* values from index 0. The writer stores head before state, and a reader loads state before head. The
/// loaded head is therefore at least as new as the loaded state. If the old state says "one value" and the new head has
/// an extent, the first value of the extent is the value of the old head. Bit 63 of `state`: the list has removal words
/// (Removal).
struct Entry {
    std::uint64_t state = 0;
    TermId head = 0;
};

constexpr std::uint64_t make_state(Snapshot last, std::uint32_t length) { return (std::uint64_t{last} << 32) | length; }
inline constexpr std::uint64_t kHasRemovals = std::uint64_t{1} << 63;
constexpr bool has_removals(std::uint64_t state) { return (state & kHasRemovals) != 0; }
constexpr Snapshot last_of(std::uint64_t state) { return static_cast<Snapshot>(state >> 32) & kMaxSnapshot; }
/// Whether every position of the list is a value that such a reader sees. One comparison suffices, because a list with
/// removal words compares as if it had changed after every snapshot.
constexpr bool whole_before(std::uint64_t state, Snapshot first_excluded) {
    return static_cast<Snapshot>(state >> 32) < first_excluded;
}
constexpr std::uint32_t length_of(std::uint64_t state) { return static_cast<std::uint32_t>(state); }

constexpr bool is_extent(TermId head) { return tag_of(head) == Tag::Extent; }
constexpr TermId extent_head(Offset extent) { return make_id(Tag::Extent, extent); }
constexpr Offset extent_of(TermId head) { return head & (kMaxRegionBytes - 1); }

/// A list that was rewritten without removed values has such a head. This structure precedes the first extent of the
/// list. `state`: the state of the list before the rewriting. `length`: the number of the same words in the new
/// extents. `commit`: the commit that has rewritten the list. (0: no commit, because no reader needs the old
/// positions.) A reader that has loaded an older state with this head, or that reads append logs of earlier commits,
/// subtracts `shift` from lengths and positions (lookup::settled_state, ListVersion).
struct Rewritten {
    std::uint64_t state;
    std::uint32_t length;
    std::uint32_t commit;

    constexpr std::uint32_t shift() const { return length_of(state) - length; }
    constexpr bool follows(std::uint64_t other) const { return other == state || last_of(other) < commit; }
};
inline constexpr TermId kRewritten = std::uint64_t{1} << 59;
constexpr bool is_rewritten(TermId head) { return is_extent(head) && (head & kRewritten) != 0; }
constexpr TermId rewritten_head(Offset extent) { return extent_head(extent) | kRewritten; }

/// A piece of a list, followed by `capacity` values. Its first `sorted` values ascend (in base extents of bulk loads:
/// all of them). `next` [word] is set before the entry's state publishes any value beyond this extent.
struct ListExtent {
    std::uint32_t capacity;
    std::uint32_t sorted;
    std::uint64_t next;

    TermId* values() { return reinterpret_cast<TermId*>(this + 1); }
    const TermId* values() const { return reinterpret_cast<const TermId*>(this + 1); }
    static constexpr std::uint64_t bytes(std::uint64_t capacity) { return sizeof(ListExtent) + 8 * capacity; }
};

/// A removal word has a position in a list, like a value, but changes another position: it removes or restores the
/// value at `position`. Each value of a list has exactly one position. If several removal words name a position, the
/// last visible word decides. Removal words are greater than all terms, so they end the ascending values of a commit.
struct Removal {
    static constexpr TermId make(std::uint32_t position, bool restores) {
        return make_id(Tag::Removal, std::uint64_t{restores} << 32 | position);
    }
    static constexpr bool is(TermId word) { return tag_of(word) == Tag::Removal; }
    static constexpr std::uint32_t position(TermId word) { return static_cast<std::uint32_t>(word); }
    static constexpr bool restores(TermId word) { return (word >> 32 & 1) != 0; }
};

// ---- records

/// The directory of the labels that a vertex has in one direction; a record is a chain of these. `state` [word] holds
/// the next piece's offset, the capacity, and the number of labels in use. One store to this word therefore publishes
/// new labels and a new piece together. `capacity` labels (u32, padded to 8 bytes) follow, then as many entries.
///
/// A reader scans only the labels at positions up to about kScannedLabels. For each label of a piece that begins after
/// this position, the table has a slot with the key (vertex, label, direction). A directory with very many labels is
/// therefore not slower.
struct Directory {
    std::uint64_t state;

    static constexpr std::uint32_t kMaxCapacity = 2048;
    static constexpr std::uint32_t kScannedLabels = 32;

    static constexpr std::uint64_t make_state(Offset next, std::uint32_t capacity, std::uint32_t count) {
        return (next >> 3 << 24) | (std::uint64_t{capacity} << 12) | count;
    }
    static constexpr Offset next_of(std::uint64_t state) { return state >> 24 << 3; }
    static constexpr std::uint32_t capacity_of(std::uint64_t state) { return (state >> 12) & 0xFFF; }
    static constexpr std::uint32_t count_of(std::uint64_t state) { return state & 0xFFF; }

    static constexpr std::uint64_t label_bytes(std::uint64_t capacity) {
        return (capacity * 4 + 7) & ~std::uint64_t{7};
    }
    static constexpr std::uint64_t bytes(std::uint64_t capacity) {
        return sizeof(Directory) + label_bytes(capacity) + capacity * sizeof(Entry);
    }
    static constexpr Offset entry_at(Offset directory, std::uint32_t capacity, std::uint32_t index) {
        return directory + sizeof(Directory) + label_bytes(capacity) + index * sizeof(Entry);
    }
    Label* labels() { return reinterpret_cast<Label*>(this + 1); }
    const Label* labels() const { return reinterpret_cast<const Label*>(this + 1); }
};

// ---- table

/// The target of a slot: the offset (bits 3..47) of a record, or of the Directory piece that contains a label. Bit 0 is
/// the direction, and bit 1 distinguishes the two kinds of offset. For a label, the top 16 bits are its index in the
/// piece.
struct Ref {
    static constexpr std::uint64_t kKindMask = 3;
    static constexpr std::uint64_t make(Offset offset, Dir dir) { return offset | static_cast<std::uint64_t>(dir); }
    static constexpr std::uint64_t make_label(Offset piece, Dir dir, std::uint32_t index) {
        return (std::uint64_t{index} << 48) | piece | 2 | static_cast<std::uint64_t>(dir);
    }
    static constexpr std::uint64_t record_kind(Dir dir) { return static_cast<std::uint64_t>(dir); }
    static constexpr std::uint64_t label_kind(Dir dir) { return 2 | static_cast<std::uint64_t>(dir); }
    static constexpr Offset offset(std::uint64_t ref) { return ref & 0x0000FFFFFFFFFFF8ull; }
    static constexpr std::uint32_t index(std::uint64_t ref) { return static_cast<std::uint32_t>(ref >> 48); }
    static constexpr Dir dir(std::uint64_t ref) { return static_cast<Dir>(ref & 1); }
    static constexpr bool is_label(std::uint64_t ref) { return (ref & 2) != 0; }
};

/// Immutable once `key` [word], the vertex, is stored. A reader stops at the first key 0: slots of one bucket are
/// published in order, so no slot behind it belongs to the reader's snapshot.
struct Slot {
    TermId key;
    std::uint64_t ref;
};

/// Two cache lines, one remote READ (Wukong §4.3: cluster chaining). `overflow` [word] refers to the next bucket of the
/// chain, in the overflow area of the same generation.
struct Bucket {
    static constexpr std::size_t kSlots = 7;
    Slot slots[kSlots];
    std::uint64_t overflow;
    std::uint64_t unused;
};
static_assert(sizeof(Bucket) == 128);

/// One part of the key table in one generation: this header, `buckets` main buckets, `spare` overflow buckets. The
/// table is partitioned by hash. The growth of a part copies the slots of this part, and is therefore only a short
/// pause. Only the writer uses the counters.
struct Table {
    static constexpr int kPartBits = 6;
    static constexpr std::size_t kParts = std::size_t{1} << kPartBits;
    static constexpr std::size_t part(std::uint64_t hash) { return hash >> (64 - kPartBits); }

    std::uint64_t buckets;
    std::uint64_t spare;
    std::uint64_t spare_used;
    std::uint64_t slots;  // published or pending
    std::uint64_t unused[12];

    static constexpr std::uint64_t bytes(std::uint64_t buckets, std::uint64_t spare) {
        return sizeof(Table) + (buckets + spare) * sizeof(Bucket);
    }
    static constexpr Offset bucket_at(Offset table, std::uint64_t number) {
        return table + sizeof(Table) + number * sizeof(Bucket);
    }

    /// Packs the offset of a generation and its number of main buckets into one word; readers need not load the header.
    static constexpr std::uint64_t kMaxBuckets = (std::uint64_t{1} << 28) - 1;
    static constexpr std::uint64_t make_word(Offset table, std::uint64_t buckets) { return table >> 7 << 28 | buckets; }
    static constexpr Offset offset_of(std::uint64_t word) { return word >> 28 << 7; }
    static constexpr std::uint64_t buckets_of(std::uint64_t word) { return word & kMaxBuckets; }
};
static_assert(sizeof(Table) == 128);

/// The seed is specific to the region, so that a client cannot choose ids that all fall into one bucket.
constexpr std::uint64_t record_hash(std::uint64_t seed, TermId vertex, Dir dir) {
    return mix((vertex ^ seed) + static_cast<std::uint64_t>(dir) * 0x9E3779B97F4A7C15ull);
}
constexpr std::uint64_t label_hash(std::uint64_t seed, TermId vertex, Label label, Dir dir) {
    return mix(record_hash(seed, vertex, dir) ^ (label * 0xC2B2AE3D27D4EB4Full));
}
/// Maps a hash onto 0..n-1 by its high bits.
constexpr std::uint64_t reduce(std::uint64_t hash, std::uint64_t n) {
    return static_cast<std::uint64_t>((static_cast<unsigned __int128>(hash) * n) >> 64);
}

// ---- labels

/// Per label: the planner's counts, and the two lists of Wukong's predicate index (§4.1, index vertices 0 | label |
/// dir): the vertices with at least one out-edge or in-edge of this label. Their lengths are the numbers of distinct
/// subjects and objects.
struct LabelRow {
    std::uint64_t edges;  // [word] out-edges in this shard
    Entry vertices[2];    // by Dir
};

/// Rows lie in chunks of doubling size: rows 0..63, 64..127, 128..255, …
struct LabelChunk {
    static constexpr std::size_t kChunks = 19;  // 2^24 labels
    static constexpr std::uint64_t kFirst = 64;
    static constexpr std::size_t number(Label label) {
        return static_cast<std::size_t>(std::bit_width(label / kFirst));
    }
    static constexpr std::uint64_t first(std::size_t chunk) { return chunk == 0 ? 0 : kFirst << (chunk - 1); }
    static constexpr std::uint64_t rows(std::size_t chunk) { return chunk == 0 ? kFirst : kFirst << (chunk - 1); }
    static constexpr Offset row_at(Offset chunk_offset, Label label) {
        return chunk_offset + (label - first(number(label))) * sizeof(LabelRow);
    }
};
inline constexpr Label kMaxLabel = static_cast<Label>((LabelChunk::kFirst << (LabelChunk::kChunks - 1)) - 1);

// ---- commits

/// Positions [before, before + count) of the list belong to this commit. `previous` is the snapshot of the previous
/// change of the list. A walk from log to log along `previous` visits exactly the commits that changed the list, newest
/// first. If the commit has rewritten the list, it has removed `shift` words before position `before`.
struct Append {
    Offset entry = 0;  // 0 marks an empty slot of a hash
    std::uint32_t before = 0;
    std::uint32_t count = 0;
    Snapshot previous = 0;
    std::uint32_t shift = 0;
};
static_assert(sizeof(Append) == 24);

/// The commit also contains the value at this position, which an earlier commit of another stream has already stored. A
/// view that excludes the earlier commit, but includes this commit, must see the value.
struct Reassertion {
    Offset entry = 0;
    std::uint32_t position = 0;
    std::uint32_t unused = 0;
    friend auto operator<=>(const Reassertion&, const Reassertion&) = default;
};

/// A commit as readers in other processes see it: its source, and its append log in this shard. The log is a hash by
/// entry with `slots` places (append_log.hpp), followed by `reasserted` Reassertions in order. A snapshot without a log
/// has log = 0.
struct CommitEntry {
    Snapshot snapshot;
    std::uint32_t stream;
    std::int64_t batch;
    Offset log;
    std::uint32_t slots;
    std::uint32_t reasserted;
};
static_assert(sizeof(CommitEntry) == 32);

/// The commits of a shard: entries by snapshot modulo capacity, for all snapshots from Header::oldest_readable to
/// `published`. An entry is written before its snapshot is published. It overwrites only entries that no reader can use
/// any more. The word that publishes the ring holds its offset (a multiple of 128) and, in the low bits, the logarithm
/// of the capacity.
struct CommitRing {
    static constexpr std::uint64_t make(Offset ring, int capacity_log) {
        return ring | static_cast<std::uint64_t>(capacity_log);
    }
    static constexpr std::uint64_t capacity(std::uint64_t word) { return std::uint64_t{1} << (word & 63); }
    static constexpr Offset entry_at(std::uint64_t word, Snapshot snapshot) {
        return (word & ~std::uint64_t{127}) + (snapshot & (capacity(word) - 1)) * sizeof(CommitEntry);
    }
};

// ---- header

/// Local_VTS of one shard (Wukong+S §4.3): `batches[stream]` [word]; kNever if the stream has closed no batch.
struct VtsArray {
    std::uint64_t capacity;
    std::uint64_t* batches() { return reinterpret_cast<std::uint64_t*>(this + 1); }
    const std::uint64_t* batches() const { return reinterpret_cast<const std::uint64_t*>(this + 1); }
    static constexpr std::uint64_t bytes(std::uint64_t capacity) { return sizeof(VtsArray) + 8 * capacity; }
};

enum class RegionStatus : std::uint64_t { Live = 1, Retired = 2 };

struct Header {
    std::uint64_t magic;
    std::uint32_t version;
    std::uint32_t shard;
    std::uint32_t shards;
    std::uint32_t header_bytes;
    std::uint64_t epoch;          // differs between incarnations; offsets are valid within one epoch only
    std::uint64_t seed;           // of the table's hash
    std::uint64_t reserve_bytes;  // address space that a reader must reserve
    std::uint64_t status;         // [word] RegionStatus: Retired once its writer has released it
    std::uint64_t mapped;         // [word] bytes of the file; only grows
    std::uint64_t used;           // bytes allocated so far
    std::uint64_t published;      // [word] newest snapshot of which this shard shows every change
    std::uint64_t
        reclaims;         // [word] counts reuses of memory: a reader in another process that sees a change reads again
    std::uint64_t vts;    // [word] VtsArray
    std::uint64_t edges;  // [word] out-edges here
    std::uint64_t tables[Table::kParts];              // [word] each: the part's current generation (Table::make_word)
    std::uint64_t label_chunks[LabelChunk::kChunks];  // [word] each
    std::uint64_t commits;                            // [word] CommitRing; 0 where logs are not published
    std::uint64_t oldest_readable;                    // [word] the ring contains every commit from this snapshot on
    std::uint64_t rewritten;                          // [word] the last commit that has rewritten a list; 0: none
};
static_assert(sizeof(Header) <= kHeaderBytes);

}  // namespace penstock::layout
