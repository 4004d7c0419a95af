#include "rdf/dictionary.hpp"

#include <algorithm>
#include <charconv>
#include <random>

#include "errors.hpp"
#include "rdf/dictionary_impl.hpp"
#include "rdf/sweeps.hpp"

namespace penstock {
namespace {

constexpr std::size_t kSweepSegment = 4096;  // entries examined per acquisition of the lock
constexpr std::size_t kBatch = 32;           // terms whose cache misses overlap
constexpr std::size_t kCacheLine = 64;

std::uint64_t random_seed() {
    std::random_device device;
    return (static_cast<std::uint64_t>(device()) << 32) | device();
}

[[noreturn]] void names_nothing(TermId id) { throw DataError("term id " + std::to_string(id) + " names nothing"); }

/// The number in the label of a blank node of this dictionary, "b<number>"; -1 for other labels.
std::int64_t blank_number(std::string_view label) {
    std::int64_t number = -1;
    if (label.size() < 2 || label.size() > 18 || label[0] != 'b' || (label[1] == '0' && label.size() > 2)) return -1;
    const auto result = std::from_chars(label.data() + 1, label.data() + label.size(), number);
    return result.ec == std::errc{} && result.ptr == label.data() + label.size() ? number : -1;
}

TermId inline_id(const TermView& term) {
    if (term.kind != Kind::Literal) return kUnbound;
    return encode_inline(term.lexical, term.datatype.empty() ? kXsdString : term.datatype, term.lang);
}

bool is_entry(TermId id) { return tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal; }

}  // namespace

// ---------------------------------------------------------------- entries
Dictionary::Impl::Impl() : seed(random_seed()) {}

std::uint32_t Dictionary::Impl::take_slot() {
    if (!free_slots.empty()) {
        const std::uint32_t slot = free_slots.back();
        free_slots.pop_back();
        return slot;  // used before, so its segment exists
    }
    entries.reach(next_slot);
    return static_cast<std::uint32_t>(next_slot++);
}

void Dictionary::Impl::fill(std::uint32_t slot, const TermKey& key, std::uint64_t use, bool indexed) {
    const TermRecord* record = TermRecord::write(heap.allocate(key.record_bytes()), key);
    Entry& entry = entries[slot];
    entry.use.store(use | (key.tag() == Tag::Literal ? Entry::kLiteral : 0), std::memory_order_relaxed);
    entry.record.store(record, std::memory_order_release);  // see entry_table.hpp
    if (indexed) part(key.hash).insert(key.hash, slot);
    if (is_sources(slot)) entries.filled(slot);
    live.fetch_add(1, std::memory_order_relaxed);
}

TermId Dictionary::Impl::add(const TermKey& key, Lifetime lifetime) {
    const std::uint32_t slot = take_slot();
    const Tick tick = now.load(std::memory_order_relaxed);
    fill(slot, key, (tick << 1) | (lifetime == Lifetime::Permanent ? Entry::kPermanent : 0));
    if (lifetime == Lifetime::Transient) ages[tick].push_back(slot);
    return make_id(key.tag(), slot);
}

TermId Dictionary::Impl::intern(const TermKey& key, Lifetime lifetime) {
    if (source != nullptr) lifetime = Lifetime::Transient;
    const std::uint32_t slot = lookup(key);
    if (slot == 0) return add(key, lifetime);
    Entry& entry = entries[slot];
    entry.touch(now.load(std::memory_order_relaxed));
    if (lifetime == Lifetime::Permanent) entry.keep();
    return make_id(key.tag(), slot);
}

void Dictionary::Impl::free(std::uint32_t slot) {
    Entry& entry = entries[slot];
    const TermRecord* dead = entry.record.load(std::memory_order_relaxed);
    if (superseded.erase(slot) == 0 && removable.erase(slot) == 0) {  // otherwise the index does not have this slot
        const TermKey key(dead->view(), seed);
        part(key.hash).erase(key.hash, slot);
    }
    entry.record.store(nullptr, std::memory_order_release);
    heap.release(const_cast<TermRecord*>(dead), dead->bytes());
    if (is_sources(slot))
        entries.emptied(slot);
    else
        free_slots.push_back(slot);
    live.fetch_sub(1, std::memory_order_relaxed);
}

Dictionary::Dictionary() : impl_(std::make_unique<Impl>()) {}

Dictionary::~Dictionary() = default;

// ---------------------------------------------------------------- terms to ids
TermId Dictionary::intern(const TermView& term) {
    TermId id = kUnbound;
    intern(std::span(&term, 1), &id);
    return id;
}

void Dictionary::intern(std::span<const TermView> terms, TermId* out, Lifetime lifetime) {
    // Four passes over a few terms at a time. Each pass ends where the next would wait for memory: cell of the index,
    // entry, record, comparison.
    std::array<TermKey, kBatch> keys;
    std::array<std::uint32_t, kBatch> places;
    std::array<std::uint32_t, kBatch> candidates;
    const std::scoped_lock lock(impl_->mutex);
    for (; !terms.empty(); terms = terms.subspan(std::min(kBatch, terms.size())), out += kBatch) {
        std::size_t n = 0;
        for (std::uint32_t i = 0; i < std::min(kBatch, terms.size()); ++i) {
            out[i] = terms[i].kind == Kind::Blank ? known_blank(terms[i]) : inline_id(terms[i]);
            if (out[i] != kUnbound) continue;
            keys[n] = TermKey(terms[i], impl_->seed);
            impl_->part(keys[n].hash).prefetch(keys[n].hash);
            places[n++] = i;
        }
        for (std::size_t k = 0; k < n; ++k) {
            candidates[k] = impl_->part(keys[k].hash).candidate(keys[k].hash);
            if (candidates[k] != 0) impl_->entries.prefetch(candidates[k]);
        }
        for (std::size_t k = 0; k < n; ++k)
            if (candidates[k] != 0) __builtin_prefetch(impl_->record(candidates[k]));
        for (std::size_t k = 0; k < n; ++k) out[places[k]] = impl_->intern(keys[k], lifetime);
    }
}

TermId Dictionary::known_blank(const TermView& term) const {
    const TermId id = find(term);
    if (id == kUnbound) throw DataError("no blank node is labelled '" + std::string(term.lexical) + "' here");
    return id;
}

TermId Dictionary::find(const TermView& term) const {
    if (term.kind == Kind::Blank) {
        const std::int64_t number = blank_number(term.lexical);
        const bool known = number >= 0 && static_cast<std::uint64_t>(number) < blank_count();
        return known ? make_id(Tag::Blank, static_cast<std::uint64_t>(number)) : kUnbound;
    }
    if (const TermId id = inline_id(term); id != kUnbound) return id;
    const TermKey key(term, impl_->seed);
    const std::scoped_lock lock(impl_->mutex);
    const std::uint32_t slot = impl_->lookup(key);
    if (slot == 0) return kUnbound;
    impl_->entries[slot].touch(impl_->now.load(std::memory_order_relaxed));
    return make_id(key.tag(), slot);
}

// ---------------------------------------------------------------- ids to terms
TermView Dictionary::view(TermId id, std::string& scratch) const {
    if (!is_entry(id)) {
        const TermView term = decode_inline(id, scratch);
        if (term.kind == Kind::Unbound) names_nothing(id);
        return term;
    }
    const Entry* entry = impl_->entries.find(payload_of(id));
    const TermRecord* record = entry == nullptr ? nullptr : entry->record.load(std::memory_order_acquire);
    if (record == nullptr || record->tag() != tag_of(id)) names_nothing(id);
    return record->view();
}

void Dictionary::records(std::span<const TermId> ids, const TermRecord** out) const {
    for (const TermId id : ids)
        if (is_entry(id)) impl_->entries.prefetch(payload_of(id));
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const Entry* const entry = is_entry(ids[i]) ? impl_->entries.find(payload_of(ids[i])) : nullptr;
        out[i] = entry == nullptr ? nullptr : entry->record.load(std::memory_order_acquire);
        __builtin_prefetch(out[i]);
        __builtin_prefetch(reinterpret_cast<const char*>(out[i]) + kCacheLine);
    }
}

bool Dictionary::Impl::names_something(TermId id) const {
    if (id == kUnbound) return true;
    if (tag_of(id) == Tag::Blank) return payload_of(id) < blanks.load(std::memory_order_relaxed);
    if (!is_entry(id)) return is_valid_inline(id);
    if (source && !is_private(id)) return true;  // the source is responsible for it
    const Entry* entry = entries.find(payload_of(id));
    return entry != nullptr && entry->names(tag_of(id));
}

template <class Visit>
void Dictionary::Impl::each_ahead(const TermId* ids, std::size_t n, Visit visit) const {
    for (std::size_t i = 0; i < n; ++i) {
        if (i + kBatch < n && is_entry(ids[i + kBatch])) entries.prefetch(payload_of(ids[i + kBatch]));
        visit(ids[i]);
    }
}

void Dictionary::check(const TermId* ids, std::size_t n) const {
    const std::scoped_lock lock(impl_->mutex);  // excludes a sweep
    impl_->each_ahead(ids, n, [&](TermId id) {
        if (!impl_->names_something(id)) names_nothing(id);
    });
}

bool Dictionary::admit(const TermId* ids, std::size_t n) {
    const Tick now = tick();
    bool permanent = !partial();
    const std::scoped_lock lock(impl_->mutex);  // excludes a sweep
    impl_->each_ahead(ids, n, [&](TermId id) {
        Entry* const entry = is_entry(id) ? impl_->entries.find(payload_of(id)) : nullptr;
        // The most common case first; all others need a call.
        if ((entry == nullptr || !entry->names(tag_of(id))) && !impl_->names_something(id)) names_nothing(id);
        if (entry != nullptr) permanent &= entry->touch(now);
    });
    return permanent;
}

// ---------------------------------------------------------------- blank nodes
TermId Dictionary::fresh_blank() { return make_id(Tag::Blank, impl_->blanks.fetch_add(1, std::memory_order_relaxed)); }

std::uint64_t Dictionary::blank_count() const { return impl_->blanks.load(std::memory_order_relaxed); }

void Dictionary::reserve_blanks(std::uint64_t n) {
    std::uint64_t seen = blank_count();
    while (seen < n && !impl_->blanks.compare_exchange_weak(seen, n, std::memory_order_relaxed)) {
    }
}

// ---------------------------------------------------------------- lifetime of entries
void Dictionary::set_tick(Tick tick) { impl_->now.store(tick, std::memory_order_relaxed); }

Tick Dictionary::tick() const { return impl_->now.load(std::memory_order_relaxed); }

bool Dictionary::touch(const TermId* ids, std::size_t n) {
    const Tick now = tick();
    bool permanent = !partial();
    impl_->each_ahead(ids, n, [&](TermId id) {
        if (!is_entry(id)) return;
        if (Entry* entry = impl_->entries.find(payload_of(id))) permanent &= entry->touch(now);
    });
    return permanent;
}

void Dictionary::keep(const TermId* ids, std::size_t n) {
    if (partial()) {
        touch(ids, n);
        return;
    }
    impl_->each_ahead(ids, n, [&](TermId id) {
        if (!is_entry(id)) return;
        if (Entry* entry = impl_->entries.find(payload_of(id))) entry->keep();
    });
}

std::size_t Dictionary::sweep(Tick oldest_live) {
    sweeps_so_far.fetch_add(1, std::memory_order_relaxed);
    std::size_t freed = 0;
    bool more = true;
    while (more) {
        const std::scoped_lock lock(impl_->mutex);
        more = impl_->sweep_some(oldest_live, kSweepSegment, freed);
    }
    return freed;
}

// `ages` stores each transient entry under a tick at or before its last use. When that tick falls behind the horizon,
// the entry is freed, or stored under its last use: at most once per use and width of the horizon.
bool Dictionary::Impl::sweep_some(Tick oldest_live, std::size_t steps, std::size_t& freed) {
    const Tick horizon = leases.empty() ? oldest_live : std::min(oldest_live, leases.begin()->first);
    while (!ages.empty() && ages.begin()->first < horizon) {
        std::vector<std::uint32_t>& slots = ages.begin()->second;
        for (; !slots.empty(); slots.pop_back(), --steps) {
            if (steps == 0) return true;
            const std::uint32_t slot = slots.back();
            const std::uint64_t use = entries[slot].use.load(std::memory_order_relaxed);
            if ((use & Entry::kPermanent) != 0) continue;
            if (is_sources(slot) && record(slot) == nullptr) continue;  // drop()
            if (Entry::tick_of(use) >= horizon) {
                ages[Entry::tick_of(use)].push_back(slot);
            } else {
                free(slot);
                ++freed;
            }
        }
        ages.erase(ages.begin());
    }
    return false;
}

Dictionary::Lease::Lease(Dictionary& dictionary) : dictionary_(dictionary) {
    const std::scoped_lock lock(dictionary.impl_->mutex);
    tick_ = dictionary.tick();
    ++dictionary.impl_->leases[tick_];
}

Dictionary::Lease::~Lease() {
    const std::scoped_lock lock(dictionary_.impl_->mutex);
    const auto it = dictionary_.impl_->leases.find(tick_);
    if (--it->second == 0) dictionary_.impl_->leases.erase(it);
}

// ---------------------------------------------------------------- size
std::size_t Dictionary::size() const { return impl_->live.load(std::memory_order_relaxed); }

std::size_t Dictionary::live_bytes() const {
    constexpr std::size_t kIndexed = sizeof(Entry) + sizeof(std::uint64_t) * 2;  // one cell, at the usual load
    const std::scoped_lock lock(impl_->mutex);
    return impl_->heap.used() + size() * kIndexed;
}

std::size_t Dictionary::bytes() const {
    const std::scoped_lock lock(impl_->mutex);
    std::size_t total = sizeof(Impl) + impl_->heap.bytes() + impl_->entries.bytes();
    for (const HashCells& cells : impl_->index) total += cells.bytes();
    for (const auto& [tick, slots] : impl_->ages)
        total += sizeof(std::vector<std::uint32_t>) + slots.capacity() * sizeof(std::uint32_t);
    return total + impl_->free_slots.capacity() * sizeof(std::uint32_t);
}

}  // namespace penstock
