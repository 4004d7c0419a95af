#include <algorithm>

#include "rdf/local_terms_impl.hpp"

namespace penstock {

LocalTerms::LocalTerms(const Dictionary& dictionary) : impl_(std::make_unique<Impl>(dictionary)) {}
LocalTerms::~LocalTerms() = default;

TermId LocalTerms::intern(const TermView& term) {
    if (term.kind == Kind::Literal) {
        const TermId id = encode_inline(term.lexical, term.datatype.empty() ? kXsdString : term.datatype, term.lang);
        if (id != kUnbound) return id;
    }
    // Local terms first: a term that the dictionary learns only after its creation here retains its local id, so it has
    // one id throughout the evaluation.
    Impl& impl = *impl_;
    const bool blank = term.kind == Kind::Blank;
    const TermKey key = blank ? TermKey() : TermKey(term, impl.dictionary.impl_->seed);
    if (!blank) {
        const std::uint32_t slot =
            impl.cells.find(key.hash, [&](std::uint32_t s) { return impl.records[s - 1]->equals(key); });
        if (slot != 0) return impl.settled_id(make_id(Tag::Local, slot - 1));
    }
    // A private id does not show whether the source has since added the term. The term becomes local; see settle().
    if (const TermId id = impl.dictionary.find(term); id != kUnbound && !is_private(id)) return id;
    if (blank) throw DataError("no blank node is labelled '" + std::string(term.lexical) + "' here");
    return impl.add(key);
}

TermId LocalTerms::fresh_blank() {
    if (impl_->blank_prefix.empty()) {
        const std::uint64_t number = impl_->dictionary.impl_->evaluations.fetch_add(1, std::memory_order_relaxed);
        impl_->blank_prefix.append("e").append(std::to_string(number)).append("n");
    }
    impl_->records.push_back(nullptr);
    return make_id(Tag::Local, impl_->records.size() - 1);
}

TermView LocalTerms::view(TermId id, std::string& scratch) const {
    if (tag_of(id) != Tag::Local) return impl_->dictionary.view(id, scratch);
    if (const TermRecord* record = impl_->record(id)) return record->view();
    scratch = impl_->blank_prefix + std::to_string(payload_of(id));
    return {Kind::Blank, scratch, {}, {}};
}

void LocalTerms::records(std::span<const TermId> ids, const TermRecord** out) const {
    impl_->dictionary.records(ids, out);
    if (impl_->records.empty()) return;
    for (std::size_t i = 0; i < ids.size(); ++i)
        if (tag_of(ids[i]) == Tag::Local) out[i] = impl_->record(ids[i]);
}

void LocalTerms::require(std::span<const TermId> ids) const {
    if (partial()) impl_->dictionary.require(ids.data(), ids.size());
}

TermId LocalTerms::publish(TermId id, Dictionary& dictionary) {
    if (tag_of(id) != Tag::Local) return id;
    if (const TermId settled = impl_->settled_id(id); settled != id) return settled;
    if (const TermRecord* record = impl_->record(id)) return dictionary.intern(record->view());
    const auto [it, fresh] = impl_->published_blanks.try_emplace(id, kUnbound);
    if (fresh) it->second = dictionary.fresh_blank();
    return it->second;
}

std::span<const TermId> LocalTerms::published(std::span<const TermId> ids, Dictionary& dictionary,
                                              std::vector<TermId>& replaced) {
    if (std::ranges::none_of(ids, [](TermId id) { return tag_of(id) == Tag::Local; })) return ids;
    replaced.resize(ids.size());
    std::ranges::transform(ids, replaced.begin(), [&](TermId id) { return publish(id, dictionary); });
    return replaced;
}

std::size_t LocalTerms::size() const { return impl_->records.size(); }

std::size_t LocalTerms::bytes() const {
    return sizeof(Impl) + impl_->heap.bytes() + impl_->cells.bytes() + impl_->records.capacity() * sizeof(void*) +
           impl_->settled.capacity() * sizeof(TermId);
}

const Dictionary& LocalTerms::dictionary() const { return impl_->dictionary; }

}  // namespace penstock
