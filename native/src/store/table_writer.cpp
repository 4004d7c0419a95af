#include "store/table_writer.hpp"

#include <algorithm>

#include "store/lookup.hpp"

namespace penstock {

using layout::Bucket;
using layout::Directory;
using layout::Offset;
using layout::Ref;
using layout::Slot;
using layout::Table;

namespace {

// Slots per main bucket, times 10. With 7 places a bucket and a quarter as many overflow buckets, six slots a bucket
// use 27 bytes a slot: the least over the choices of load and overflow (docs/adr/0003).
constexpr std::uint64_t kBuiltLoad = 56;
constexpr std::uint64_t kFullLoad = 60;
constexpr std::uint64_t kFirstSlots = 64;
constexpr std::size_t kAhead = 16;  // slots prefetched together

}  // namespace

TableWriter::TableWriter(Region& region) : region_(region) {
    if (table() == 0) layout::store_release(region_.header().table, make_table(kFirstSlots));
}

Offset TableWriter::make_table(std::uint64_t slots) {
    const std::uint64_t buckets = slots * 10 / kBuiltLoad + 1;
    const std::uint64_t spare = buckets / 4 + 8;
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
    auto* bucket = &region_.at<Bucket>(lookup::first_bucket(region_, offset, hash));
    for (;;) {
        for (Slot& slot : bucket->slots) {
            if (slot.ref != 0) continue;
            ++table.slots;
            return &slot;
        }
        if (bucket->overflow == 0) {
            if (table.spare_used == table.spare) return nullptr;
            // An empty bucket: whether a reader sees it makes no difference.
            layout::store_release(bucket->overflow, Table::bucket_at(offset, table.buckets + table.spare_used++));
        }
        bucket = &region_.at<Bucket>(bucket->overflow);
    }
}

bool TableWriter::try_claim(std::vector<PendingSlot>& slots) {
    const Offset table = this->table();
    const auto& header = region_.at<Table>(table);
    if ((header.slots + slots.size()) * 10 > header.buckets * kFullLoad) return false;
    for (std::size_t i = 0; i < slots.size(); ++i) {
        if (i + kAhead < slots.size())
            __builtin_prefetch(&region_.at<Bucket>(lookup::first_bucket(region_, table, slots[i + kAhead].hash)), 1);
        slots[i].slot = claim_slot(table, slots[i].hash);
        if (slots[i].slot == nullptr) return false;
        slots[i].slot->ref = slots[i].ref;  // the key stays 0: to readers the slot is empty
    }
    return true;
}

void TableWriter::claim(std::vector<PendingSlot>& slots, Snapshot snapshot) {
    // A failed attempt leaves claims behind only in a generation that grow() then replaces.
    for (std::uint64_t room = 0; !try_claim(slots);) {
        const auto& header = region_.at<Table>(table());
        room = std::max({room * 3 / 2, header.slots * 3 / 2, header.slots + slots.size(), kFirstSlots});
        try {
            grow(room, snapshot);
        } catch (...) {
            unclaim(slots);
            throw;
        }
        for (PendingSlot& slot : slots) slot.slot = nullptr;
    }
}

void TableWriter::unclaim(std::vector<PendingSlot>& slots) {
    auto& header = region_.at<Table>(table());
    for (PendingSlot& slot : slots) {
        if (slot.slot == nullptr) continue;
        slot.slot->ref = 0;
        slot.slot = nullptr;
        --header.slots;
    }
}

void TableWriter::publish(std::vector<PendingSlot>& slots, Publication& publication) const {
    for (PendingSlot& slot : slots) publication.store(slot.slot->key, slot.key);
}

std::uint64_t TableWriter::hash_of(const Slot& slot) const {
    const std::uint64_t seed = region_.header().seed;
    if (!Ref::is_label(slot.ref)) return layout::record_hash(seed, slot.key, Ref::dir(slot.ref));
    const Label label = region_.at<Directory>(Ref::offset(slot.ref)).labels()[Ref::index(slot.ref)];
    return layout::label_hash(seed, slot.key, label, Ref::dir(slot.ref));
}

bool TableWriter::copy(Offset from, Offset to) {
    const auto& old = region_.at<Table>(from);
    for (std::uint64_t i = 0; i < old.buckets + old.spare_used; ++i)
        for (const Slot& slot : region_.at<Bucket>(Table::bucket_at(from, i)).slots) {
            if (slot.key == 0) continue;
            Slot* copy = claim_slot(to, hash_of(slot));
            if (copy == nullptr) return false;
            *copy = slot;
        }
    return true;
}

void TableWriter::grow(std::uint64_t slots, Snapshot snapshot) {
    const Offset old = table();
    Offset larger = make_table(slots);
    while (!copy(old, larger)) {
        region_.free(block_of(larger));
        slots += slots / 4;
        larger = make_table(slots);
    }
    layout::store_release(region_.header().table, larger);  // publishes the copied slots
    retire(block_of(old), snapshot);
}

void TableWriter::collect(Snapshot oldest_reader) {
    std::erase_if(retired_, [&](const Retired& old) {
        if (old.since > oldest_reader) return false;
        region_.free(old.block);
        return true;
    });
}

std::vector<Span> TableWriter::retired() const {
    std::vector<Span> blocks;
    for (const Retired& old : retired_) blocks.push_back(old.block);
    return blocks;
}

}  // namespace penstock
