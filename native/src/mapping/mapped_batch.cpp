#include "mapping/mapped_batch.hpp"

#include <span>
#include <string>
#include <unordered_map>

#include "answers/text_syntax.hpp"

namespace penstock::mapping {

void MappedBatch::cut(const Mark& mark) {
    terms_.resize(mark.terms);
    for (TermIndex& constant : constants_)
        if (constant >= mark.terms) constant = kNone;
    rows_.resize(mark.rows);
    times.resize(mark.events);
    messages.resize(mark.events);
    counts.resize(mark.events);
    ends_.resize(mark.events);
}

MappedColumns MappedBatch::intern(Dictionary& dictionary, BlankScope* scope) const {
    const Dictionary::Lease lease(dictionary);
    std::vector<TermId> ids(terms_.size());
    if (!blanks_) {
        dictionary.intern(terms_, ids.data());
    } else {
        std::vector<TermView> named;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < terms_.size(); ++i) {
            if (terms_[i].kind == Kind::Blank) continue;
            named.push_back(terms_[i]);
            places.push_back(i);
        }
        std::vector<TermId> found(named.size());
        dictionary.intern(named, found.data());
        for (std::size_t i = 0; i < named.size(); ++i) ids[places[i]] = found[i];
    }
    MappedColumns columns;
    const std::array<std::vector<TermId>*, 3> parts{&columns.subjects, &columns.predicates, &columns.objects};
    for (std::vector<TermId>* part : parts) part->reserve(rows_.size());
    std::unordered_map<std::string_view, TermId> labels;  // of the blank nodes of one event
    std::size_t row = 0;
    for (const std::size_t end : ends_) {
        labels.clear();
        for (; row < end; ++row) {
            for (std::size_t i = 0; i < parts.size(); ++i) {
                TermId id = ids[rows_[row][i]];
                if (const TermView& term = terms_[rows_[row][i]]; term.kind == Kind::Blank) {
                    if (scope != nullptr && !term.lexical.starts_with(kFresh)) {
                        id = scope->node(term.lexical, dictionary);
                    } else {
                        TermId& known = labels[term.lexical];
                        if (known == kUnbound) known = dictionary.fresh_blank();
                        id = known;
                    }
                }
                parts[i]->push_back(id);
            }
        }
    }
    return columns;
}

void MappedBatch::write(TextBuffer& out, std::size_t event) const {
    for (std::size_t row = event == 0 ? 0 : ends_[event - 1]; row < ends_[event]; ++row) {
        for (const TermIndex term : rows_[row]) {
            append_ntriples_term(out, terms_[term]);
            out.append(' ');
        }
        out.append(".\n");
    }
}

}  // namespace penstock::mapping
