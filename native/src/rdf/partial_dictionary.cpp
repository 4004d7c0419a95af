// A dictionary that caches some of its source's terms, with private entries of its own (ADR 0037).
#include <algorithm>
#include <string>

#include "errors.hpp"
#include "rdf/dictionary_impl.hpp"
#include "rdf/local_terms_impl.hpp"

namespace penstock {
namespace {

constexpr std::size_t kAsked = 8192;  // the maximum number of ids or terms per request to the source

/// Calls ask(part) for a span in parts of at most kAsked.
template <class T, class Ask>
void in_parts(std::span<const T> all, Ask&& ask) {
    for (std::size_t from = 0; from < all.size(); from += kAsked)
        ask(from, all.subspan(from, std::min(kAsked, all.size() - from)));
}

bool is_sources(TermId id) {
    return (tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal) && id != kUnbound && !is_private(id);
}

}  // namespace

void Dictionary::attach(std::shared_ptr<TermSource> source) {
    const std::scoped_lock lock(impl_->mutex);
    if (impl_->next_slot != 1 || impl_->source != nullptr)
        throw DataError("only an empty dictionary can become a partial one");
    impl_->source = std::move(source);
    impl_->next_slot = kPrivateSlots;
}

TermSource* Dictionary::source() const { return impl_->source.get(); }

bool Dictionary::partial() const { return impl_->source != nullptr; }

std::uint32_t Dictionary::Impl::source_slot(TermId id, const TermKey& key) {
    const std::uint64_t payload = payload_of(id);
    if (tag_of(id) != key.tag() || payload == 0 || payload >= kPrivateSlots)
        throw DataError("id " + std::to_string(id) + " cannot be that of a source's term");
    return static_cast<std::uint32_t>(payload);
}

void Dictionary::Impl::adopt(TermId id, const TermKey& key) {
    const std::uint32_t slot = source_slot(id, key);
    const Tick tick = now.load(std::memory_order_relaxed);
    const std::uint32_t known = lookup(key);
    if (known == slot) {
        entries[slot].touch(tick);
        return;
    }
    const TermRecord* const present = record_at(slot);
    const bool confirmed = present != nullptr && removable.contains(slot) && present->equals(key);
    if ((known != 0 && known < kPrivateSlots) || (present != nullptr && !confirmed))
        throw DataError("id " + std::to_string(id) + " or its term came with another one before");
    entries.reach(slot);
    if (known != 0) {
        part(key.hash).erase(key.hash, known);
        superseded.emplace(known, id);
    }
    if (confirmed) {
        removable.erase(slot);
        part(key.hash).insert(key.hash, slot);
        entries[slot].touch(tick);
        return;
    }
    fill(slot, key, tick << 1);
    ages[tick].push_back(slot);
}

void Dictionary::Impl::adopt_removable(TermId id, const TermKey& key) {
    const std::uint32_t slot = source_slot(id, key);
    const Tick tick = now.load(std::memory_order_relaxed);
    if (const TermRecord* const present = record_at(slot); present != nullptr) {
        if (!present->equals(key)) throw DataError("id " + std::to_string(id) + " came with another term before");
        entries[slot].touch(tick);
        return;
    }
    entries.reach(slot);
    fill(slot, key, tick << 1, false);
    removable.insert(slot);
    ages[tick].push_back(slot);
}

void Dictionary::adopt_removable(std::span<const TermId> ids, std::span<const TermView> terms) {
    if (ids.size() != terms.size()) throw DataError("adopt: columns of unequal length");
    if (!partial()) throw DataError("only the source of a partial dictionary removes terms");
    const std::scoped_lock lock(impl_->mutex);
    for (std::size_t i = 0; i < ids.size(); ++i) impl_->adopt_removable(ids[i], TermKey(terms[i], impl_->seed));
}

void Dictionary::drop(const TermId* ids, std::size_t n) {
    const std::scoped_lock lock(impl_->mutex);
    for (std::size_t i = 0; i < n; ++i) {
        if (!partial() || !is_sources(ids[i])) continue;
        const Entry* entry = impl_->entries.find(payload_of(ids[i]));
        if (entry != nullptr && entry->names(tag_of(ids[i])))
            impl_->free(static_cast<std::uint32_t>(payload_of(ids[i])));
    }
}

void Dictionary::removable(const TermId* ids, std::size_t n, std::uint8_t* out) {
    std::fill_n(out, n, std::uint8_t{0});
    if (!partial()) return;
    const Lease lease(*this);  // so that no sweep frees an entry between the two steps
    require(ids, n);
    const std::scoped_lock lock(impl_->mutex);
    for (std::size_t i = 0; i < n; ++i)
        out[i] = is_sources(ids[i]) && impl_->removable.contains(static_cast<std::uint32_t>(payload_of(ids[i])));
}

std::vector<TermId> Dictionary::Impl::ask(std::span<const TermView> terms) {
    std::vector<TermId> found(terms.size(), kUnbound);
    in_parts<TermView>(
        terms, [&](std::size_t from, std::span<const TermView> part) { source->find(part, found.data() + from); });
    const std::scoped_lock lock(mutex);
    for (std::size_t i = 0; i < terms.size(); ++i)
        if (found[i] != kUnbound) adopt(found[i], TermKey(terms[i], seed));
    return found;
}

std::size_t Dictionary::require(const TermId* ids, std::size_t n) const {
    if (!partial()) return 0;
    std::vector<TermId> missing;
    {
        // Under the lock, so that no sweep frees an entry that was found present.
        const std::scoped_lock lock(impl_->mutex);
        const Tick now = tick();
        for (std::size_t i = 0; i < n; ++i) {
            if (!is_sources(ids[i]) || (i > 0 && ids[i] == ids[i - 1])) continue;
            Entry* entry = impl_->entries.find(payload_of(ids[i]));
            if (entry != nullptr && entry->names(tag_of(ids[i])))
                entry->touch(now);
            else
                missing.push_back(ids[i]);
        }
    }
    if (missing.empty()) return 0;
    std::sort(missing.begin(), missing.end());
    missing.erase(std::unique(missing.begin(), missing.end()), missing.end());
    // Logically const: to its users a partial dictionary contains all terms, and fetching does not change that.
    auto& into = const_cast<Dictionary&>(*this);
    in_parts<TermId>(missing, [&](std::size_t, std::span<const TermId> part) { impl_->source->fetch(part, into); });
    std::size_t bytes = 0;
    for (const TermId id : missing) {
        const TermRecord* record = impl_->record_at(payload_of(id));
        if (record == nullptr) throw DataError("the source of terms gave none for id " + std::to_string(id));
        bytes += sizeof(Entry) + record->bytes();
    }
    return bytes;
}

void Dictionary::settle(TermId* ids, std::size_t n) const {
    std::vector<TermId> asked;
    {
        const std::scoped_lock lock(impl_->mutex);
        for (std::size_t i = 0; i < n; ++i) {
            if (!is_private(ids[i])) continue;
            const auto found = impl_->superseded.find(static_cast<std::uint32_t>(payload_of(ids[i])));
            if (found != impl_->superseded.end())
                ids[i] = found->second;
            else
                asked.push_back(ids[i]);
        }
    }
    if (asked.empty()) return;
    std::sort(asked.begin(), asked.end());
    asked.erase(std::unique(asked.begin(), asked.end()), asked.end());
    std::string scratch;
    std::vector<TermView> terms;
    for (const TermId id : asked) terms.push_back(view(id, scratch));
    const std::vector<TermId> found = impl_->ask(terms);
    for (std::size_t i = 0; i < n; ++i) {
        if (!is_private(ids[i])) continue;
        const auto at = static_cast<std::size_t>(std::lower_bound(asked.begin(), asked.end(), ids[i]) - asked.begin());
        if (found[at] != kUnbound) ids[i] = found[at];
    }
}

void LocalTerms::settle(TermId* ids, std::size_t n) {
    if (!partial()) return;
    Impl& impl = *impl_;
    impl.settled.resize(impl.records.size(), kUnbound);
    std::vector<std::uint64_t> asked;
    std::vector<TermView> terms;
    for (std::size_t i = 0; i < n; ++i) {
        if (tag_of(ids[i]) != Tag::Local) continue;
        TermId& known = impl.settled[payload_of(ids[i])];
        if (known != kUnbound) continue;
        known = ids[i];  // so that it is requested once; no data contains blank nodes of an evaluation
        const TermRecord* record = impl.records[payload_of(ids[i])];
        if (record == nullptr) continue;
        asked.push_back(payload_of(ids[i]));
        terms.push_back(record->view());
    }
    const std::vector<TermId> found = impl.dictionary.impl_->ask(terms);
    for (std::size_t k = 0; k < asked.size(); ++k)
        if (found[k] != kUnbound) impl.settled[asked[k]] = found[k];
    for (std::size_t i = 0; i < n; ++i)
        if (tag_of(ids[i]) == Tag::Local) ids[i] = impl.settled[payload_of(ids[i])];
}

void LocalTerms::pin(TermId id) {
    Impl& impl = *impl_;
    std::string scratch;
    const TermKey key(impl.dictionary.view(id, scratch), impl.dictionary.impl_->seed);
    impl.add(key);
    impl.settled.resize(impl.records.size(), kUnbound);
    impl.settled.back() = id;
}

}  // namespace penstock
