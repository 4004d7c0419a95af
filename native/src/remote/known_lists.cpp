#include "remote/known_lists.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "mix.hpp"
#include "store/lookup.hpp"

namespace penstock::remote {

namespace {

constexpr std::size_t kFirstSlots = 256;
constexpr std::size_t kBlock = 64 << 10;
constexpr std::size_t kLargest = 8;  // a list may take at most this fraction of a generation
constexpr std::size_t kGroup = 32;   // keys whose cache misses overlap

std::uint64_t hash_of(const ListKey& key) {
    return mix(mix(key.vertex ^ key.epoch) + (std::uint64_t{key.label} << 1 | static_cast<std::uint64_t>(key.dir)));
}

}  // namespace

void KnownList::confirm(Snapshot snapshot) const {
    Snapshot before = as_of.load(std::memory_order_relaxed);
    while (before < snapshot && !as_of.compare_exchange_weak(before, snapshot, std::memory_order_relaxed)) {
    }
}

std::uint32_t KnownList::find(TermId value) const {
    std::uint32_t from = 0;
    for (const KnownExtent& extent : extents) {
        const auto all = values.subspan(extent.first, std::min<std::size_t>(extent.capacity, length() - extent.first));
        const auto sorted = std::min(extent.sorted, static_cast<std::uint32_t>(all.size()));
        const std::uint32_t found = lookup::search_sorted(all.data(), sorted, value);
        if (found != lookup::kAbsent) return extent.first + found;
        const std::size_t other = sorted + lookup::scan(all.data() + sorted, all.size() - sorted, value);
        if (other < all.size()) return extent.first + static_cast<std::uint32_t>(other);
        from = extent.first + static_cast<std::uint32_t>(all.size());
    }
    const std::size_t found = from + lookup::scan(values.data() + from, values.size() - from, value);
    return found < values.size() ? static_cast<std::uint32_t>(found) : lookup::kAbsent;
}

// ---- one generation

/// Lists in an arena, found by hash. All are freed together.
class KnownLists::Generation {
public:
    Generation() : slots_(kFirstSlots) {}

    void prefetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[first(hash)]); }
    const KnownList* candidate(std::uint64_t hash) const { return slots_[first(hash)].list; }
    const KnownList* find(const ListKey& key, std::uint64_t hash) const {
        for (std::size_t at = first(hash); slots_[at].list != nullptr; at = next(at))
            if (slots_[at].hash == hash && slots_[at].list->key == key) return slots_[at].list;
        return nullptr;
    }
    /// Replaces the cached list of the key. Readers that hold the previous one may still use it.
    const KnownList* put(const Reading& reading, std::uint64_t hash) {
        reserve();
        std::size_t at = first(hash);
        while (slots_[at].list != nullptr && !(slots_[at].hash == hash && slots_[at].list->key == reading.key))
            at = next(at);
        used_ += slots_[at].list == nullptr;
        slots_[at] = {hash, make(reading, hash)};
        return slots_[at].list;
    }
    std::size_t bytes() const { return bytes_ + slots_.size() * sizeof(Slot); }
    static std::size_t bytes_of(const Reading& reading) {
        return sizeof(KnownList) + reading.values.size_bytes() + reading.extents.size_bytes();
    }

private:
    struct Slot {
        std::uint64_t hash = 0;
        const KnownList* list = nullptr;
    };
    std::size_t first(std::uint64_t hash) const { return layout::reduce(hash, slots_.size()); }
    std::size_t next(std::size_t at) const { return at + 1 == slots_.size() ? 0 : at + 1; }

    void reserve() {
        if ((used_ + 1) * 2 <= slots_.size()) return;
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old) {
            if (slot.list == nullptr) continue;
            std::size_t at = first(slot.hash);
            while (slots_[at].list != nullptr) at = next(at);
            slots_[at] = slot;
        }
    }
    std::byte* allocate(std::size_t bytes) {
        if (bytes > left_) {
            left_ = std::max(kBlock, bytes);
            blocks_.push_back(std::make_unique_for_overwrite<std::byte[]>(left_));
            bytes_ += left_;
            at_ = blocks_.back().get();
        }
        left_ -= bytes;
        return std::exchange(at_, at_ + bytes);
    }
    template <class T>
    std::span<const T> copy(std::span<const T> values) {
        if (values.empty()) return {};
        auto* const to = reinterpret_cast<T*>(allocate(values.size_bytes()));
        std::uninitialized_copy(values.begin(), values.end(), to);
        return {to, values.size()};
    }
    const KnownList* make(const Reading& reading, std::uint64_t hash) {
        auto* const list = new (allocate(sizeof(KnownList))) KnownList;
        list->key = reading.key;
        list->hash = hash;
        list->entry = reading.entry;
        list->state = reading.state;
        list->head = reading.head;
        list->read_state = reading.read_state;
        list->values = copy(reading.values);
        list->extents = copy(reading.extents);
        list->as_of.store(reading.as_of, std::memory_order_relaxed);
        return list;
    }
    static_assert(std::is_trivially_destructible_v<KnownList> && sizeof(KnownList) % 8 == 0 &&
                  sizeof(KnownExtent) % 8 == 0);

    std::vector<Slot> slots_;  // open addressing
    std::size_t used_ = 0, bytes_ = 0, left_ = 0;
    std::byte* at_ = nullptr;
    std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

// ---- both

void KnownLists::find(std::span<const ListKey> keys, std::span<const KnownList*> found, Hold& hold) {
    std::uint64_t hashes[kGroup];
    const std::scoped_lock lock(mutex_);
    if (!young_) return std::fill(found.begin(), found.end(), nullptr);
    for (std::size_t begin = 0; begin < keys.size(); begin += kGroup) {
        const std::size_t n = std::min(kGroup, keys.size() - begin);
        for (std::size_t i = 0; i < n; ++i) young_->prefetch(hashes[i] = hash_of(keys[begin + i]));
        for (std::size_t i = 0; i < n; ++i) __builtin_prefetch(young_->candidate(hashes[i]));
        for (std::size_t i = 0; i < n; ++i) {
            const KnownList*& list = found[begin + i] = young_->find(keys[begin + i], hashes[i]);
            if (list == nullptr && old_) {
                list = old_->find(keys[begin + i], hashes[i]);
                if (list != nullptr)  // now recently used
                    list = put({list->key, list->entry, list->state, list->head, list->read_state,
                                list->as_of.load(std::memory_order_relaxed), list->values, list->extents},
                               hashes[i]);
            }
            // One for each generation that started meanwhile: a single one in all but a few calls.
            if (list != nullptr && (hold.empty() || hold.back() != young_)) hold.push_back(young_);
        }
    }
}

void KnownLists::put(std::span<const Reading> readings) {
    const std::scoped_lock lock(mutex_);
    for (const Reading& reading : readings) {
        if (Generation::bytes_of(reading) > half_bytes_ / kLargest) continue;
        const std::uint64_t hash = hash_of(reading.key);
        const KnownList* const known = young_ ? young_->find(reading.key, hash) : nullptr;
        // Another thread may have read a longer list meanwhile.
        if (known == nullptr || known->as_of.load(std::memory_order_relaxed) <= reading.as_of) put(reading, hash);
    }
}

const KnownList* KnownLists::put(const Reading& reading, std::uint64_t hash) {
    std::shared_ptr<Generation> forgotten;  // `reading` may refer to data in it
    if (!young_ || young_->bytes() + Generation::bytes_of(reading) > half_bytes_) {
        forgotten = std::exchange(old_, std::exchange(young_, std::make_shared<Generation>()));
    }
    return young_->put(reading, hash);
}

std::size_t KnownLists::bytes() const {
    const std::scoped_lock lock(mutex_);
    return (young_ ? young_->bytes() : 0) + (old_ ? old_->bytes() : 0);
}

}  // namespace penstock::remote
