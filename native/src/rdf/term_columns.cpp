#include "rdf/term_columns.hpp"

#include <algorithm>
#include <string>

#include "errors.hpp"
#include "rdf/dictionary_impl.hpp"

namespace penstock {

TextColumnView::TextColumnView(std::span<const std::int32_t> offsets, std::span<const std::uint8_t> bytes)
    : offsets_(offsets), bytes_(reinterpret_cast<const char*>(bytes.data())) {
    const bool ascending = !offsets.empty() && offsets.front() >= 0 && std::is_sorted(offsets.begin(), offsets.end());
    if (!ascending || static_cast<std::size_t>(offsets.back()) > bytes.size())
        throw DataError("a column of texts whose offsets are damaged");
}

std::vector<TermView> term_views(std::span<const std::uint8_t> kinds, const TextColumnView& lexicals,
                                 const TextColumnView& datatypes, const TextColumnView& langs) {
    if (lexicals.size() != kinds.size() || datatypes.size() != kinds.size() || langs.size() != kinds.size())
        throw DataError("terms in columns of unequal length");
    std::vector<TermView> views;
    views.reserve(kinds.size());
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const auto kind = static_cast<Kind>(kinds[i]);
        if (kind != Kind::Iri && kind != Kind::Literal)
            throw DataError("a column of terms with kind " + std::to_string(kinds[i]));
        views.push_back({kind, lexicals[i], datatypes[i], langs[i]});
    }
    return views;
}

std::uint64_t Dictionary::next_slot() const {
    const std::scoped_lock lock(impl_->mutex);
    return impl_->next_slot;
}

TermColumns Dictionary::columns(std::uint64_t from, std::size_t at_most_terms, std::size_t about_bytes) const {
    TermColumns out;
    const std::scoped_lock lock(impl_->mutex);
    std::uint64_t slot = std::max<std::uint64_t>(from, 1);
    for (; slot < impl_->next_slot && out.ids.size() < at_most_terms && out.bytes() < about_bytes; ++slot) {
        const TermRecord* record = impl_->record_at(slot);
        if (record == nullptr) continue;
        const TermView term = record->view();
        out.ids.push_back(make_id(record->tag(), slot));
        out.kinds.push_back(static_cast<std::uint8_t>(term.kind));
        out.lexicals.push(term.lexical);
        out.datatypes.push(term.datatype);
        out.langs.push(term.lang);
    }
    out.next = slot;
    return out;
}

void Dictionary::adopt(std::span<const TermId> ids, std::span<const TermView> terms) {
    if (ids.size() != terms.size()) throw DataError("adopt: columns of unequal length");
    const std::scoped_lock lock(impl_->mutex);
    const std::uint64_t use = tick() << 1;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        const TermKey key(terms[i], impl_->seed);
        if (partial()) {
            impl_->adopt(ids[i], key);
            continue;
        }
        const std::uint64_t slot = payload_of(ids[i]);
        if (const std::uint32_t known = impl_->lookup(key); known != 0) {
            if (make_id(key.tag(), known) == ids[i]) continue;
            throw DataError("adopt: a term has id " + std::to_string(make_id(key.tag(), known)) + " here, not " +
                            std::to_string(ids[i]));
        }
        if (tag_of(ids[i]) != key.tag() || slot < impl_->next_slot || slot > UINT32_MAX)
            throw DataError("adopt: id " + std::to_string(ids[i]) + " is not free");
        for (; impl_->next_slot < slot; ++impl_->next_slot) {
            impl_->entries.reach(impl_->next_slot);
            impl_->free_slots.push_back(static_cast<std::uint32_t>(impl_->next_slot));
        }
        impl_->entries.reach(slot);
        impl_->fill(static_cast<std::uint32_t>(slot), key, use);
        impl_->ages[tick()].push_back(static_cast<std::uint32_t>(slot));
        impl_->next_slot = slot + 1;
    }
}

}  // namespace penstock
