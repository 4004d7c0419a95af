#include "store/table_writer.hpp"

#include <algorithm>

#include "errors.hpp"
#include "store/lookup.hpp"

namespace penstock {

using layout::Bucket;
using layout::Directory;
using layout::Offset;
using layout::Ref;
using layout::Slot;
using layout::Table;

namespace {

// Slots per main bucket, times 10. With 7 places per bucket and a quarter as many overflow buckets, six slots per
// bucket use 27 bytes per slot, the minimum over all choices of load and overflow (docs/adr/0003).
constexpr std::uint64_t kBuiltLoad = 56;
constexpr std::uint64_t kFullLoad = 60;
constexpr std::uint64_t kFirstSlots = 8;
constexpr std::size_t kAhead = 16;  // slots prefetched together

}  // namespace

TableWriter::TableWriter(Region& region) : region_(region) {
    for (auto& table : region_.header().tables)
        if (table == 0) layout::store_release(table, word_of(make_table(kFirstSlots)));
}

Offset TableWriter::make_table(std::uint64_t slots) {
    const std::uint64_t buckets = slots * 10 / kBuiltLoad + 1;
    const std::uint64_t spare = buckets / 4 + 2;
    if (buckets > Table::kMaxBuckets) throw LimitError("too many vertices in one shard");
    const Offset offset = region_.allocate_block(Table::bytes(buckets, spare));
    auto& table = region_.at<Table>(offset);
    table.buckets = buckets;
    table.spare = spare;
    return offset;
}

Span TableWriter::block_of(Offset offset) const {
    const auto& table = region_.at<Table>(offset);
    return {offset, offset + Table::bytes(table.buckets, table.spare)};
}

Slot* TableWriter::claim_slot(Offset offset, std::uint64_t hash) {
    auto& table = region_.at<Table>(offset);
    auto* bucket = &region_.at<Bucket>(lookup::first_bucket(word_of(offset), hash));
    for (;;) {
        for (Slot& slot : bucket->slots) {
            if (slot.ref != 0) continue;
            ++table.slots;
            return &slot;
        }
        if (bucket->overflow == 0) {
            if (table.spare_used == table.spare) return nullptr;
            // The bucket is empty, so it makes no difference whether a reader sees it.
            layout::store_release(bucket->overflow, Table::bucket_at(offset, table.buckets + table.spare_used++));
        }
        bucket = &region_.at<Bucket>(bucket->overflow);
    }
}

/// Grows each part that would be too full with these slots.
void TableWriter::make_room(Slots slots, Snapshot snapshot) {
    std::uint64_t added[Table::kParts] = {};
    for (const PendingSlot& slot : slots) ++added[Table::part(slot.hash)];
    for (std::size_t part = 0; part < Table::kParts; ++part) {
        const Table& table = header_of(part);
        const std::uint64_t total = table.slots + added[part];
        if (added[part] > 0 && total * 10 > table.buckets * kFullLoad)
            grow(part, std::max(table.slots * 2, total), snapshot);
    }
}

/// Called when the part has no overflow buckets left: claims the slots claimed in it again, in a larger generation.
void TableWriter::claim_again(Slots slots, std::size_t part, Snapshot snapshot) {
    for (PendingSlot& slot : slots)
        if (Table::part(slot.hash) == part) slot.slot = nullptr;
    for (bool all = false; !all;) {
        grow(part, header_of(part).slots * 3 / 2 + kFirstSlots, snapshot);
        all = true;
        for (PendingSlot& slot : slots) {
            if (Table::part(slot.hash) != part) continue;
            slot.slot = claim_slot(current(part), slot.hash);
            if (slot.slot == nullptr) {
                all = false;
                break;
            }
            slot.slot->ref = slot.ref;
        }
    }
}

void TableWriter::claim(Slots slots, Snapshot snapshot) {
    try {
        make_room(slots, snapshot);
        for (std::size_t i = 0; i < slots.size(); ++i) {
            if (i + kAhead < slots.size())
                __builtin_prefetch(&region_.at<Bucket>(lookup::current_bucket(region_, slots[i + kAhead].hash)), 1);
            const std::size_t part = Table::part(slots[i].hash);
            slots[i].slot = claim_slot(current(part), slots[i].hash);
            if (slots[i].slot == nullptr) claim_again(slots.first(i + 1), part, snapshot);
            slots[i].slot->ref = slots[i].ref;  // the key stays 0: readers treat the slot as empty
        }
    } catch (...) {
        unclaim(slots);
        throw;
    }
}

void TableWriter::unclaim(Slots slots) {
    for (PendingSlot& slot : slots) {
        if (slot.slot == nullptr) continue;
        slot.slot->ref = 0;
        slot.slot = nullptr;
        --header_of(Table::part(slot.hash)).slots;
    }
}

void TableWriter::publish(Slots slots, Publication& publication) const {
    for (PendingSlot& slot : slots) publication.store(slot.slot->key, slot.key);
}

std::uint64_t TableWriter::hash_of(const Slot& slot) const {
    const std::uint64_t seed = region_.header().seed;
    if (!Ref::is_label(slot.ref)) return layout::record_hash(seed, slot.key, Ref::dir(slot.ref));
    const Label label = region_.at<Directory>(Ref::offset(slot.ref)).labels()[Ref::index(slot.ref)];
    return layout::label_hash(seed, slot.key, label, Ref::dir(slot.ref));
}

// Chain by chain: buckets of both generations are in hash order, so both are traversed sequentially.
bool TableWriter::copy(Offset from, Offset to, const std::function<bool(const Slot&)>& dead) {
    const std::uint64_t buckets = region_.at<Table>(from).buckets;
    for (std::uint64_t i = 0; i < buckets; ++i)
        for (Offset at = Table::bucket_at(from, i); at != 0; at = region_.at<Bucket>(at).overflow)
            for (const Slot& slot : region_.at<Bucket>(at).slots) {
                if (slot.key == 0) continue;  // free, or claimed by the running commit
                if (dead && dead(slot)) continue;
                Slot* copy = claim_slot(to, hash_of(slot));
                if (copy == nullptr) return false;
                *copy = slot;
            }
    return true;
}

void TableWriter::replace(std::size_t part, std::uint64_t slots, Snapshot since,
                          const std::function<bool(const Slot&)>& dead) {
    const Offset old = current(part);
    Offset made = make_table(slots);
    while (!copy(old, made, dead)) {
        region_.free(block_of(made));
        slots += slots / 4 + kFirstSlots;
        made = make_table(slots);
    }
    layout::store_release(region_.header().tables[part], word_of(made));  // publishes the copied slots
    retire(block_of(old), since);
}

void TableWriter::grow(std::size_t part, std::uint64_t slots, Snapshot snapshot) { replace(part, slots, snapshot, {}); }

void TableWriter::drop(std::size_t part, const std::function<bool(const Slot&)>& dead, Snapshot since) {
    std::uint64_t left = 0;
    for_each_slot(part, [&](const Slot& slot) { left += dead(slot) ? 0 : 1; });
    replace(part, left + left / 8 + kFirstSlots, since, dead);
}

void TableWriter::collect(Snapshot oldest_reader) {
    for (; !retired_.empty() && retired_.front().since <= oldest_reader; retired_.pop_front())
        region_.reuse(retired_.front().block);
}

std::vector<Span> TableWriter::retired() const {
    std::vector<Span> blocks;
    blocks.reserve(retired_.size());
    for (const Retired& old : retired_) blocks.push_back(old.block);
    return blocks;
}

}  // namespace penstock
