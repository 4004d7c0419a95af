#include "answers/text_terms.hpp"

#include "errors.hpp"

namespace penstock {

TermId TextTerms::id_of(const TermView& term) {
    std::string key(1, static_cast<char>(term.kind));
    for (const std::string_view part : {term.lexical, term.datatype, term.lang})
        key.append(std::to_string(part.size())).append(":").append(part);
    const auto [it, fresh] = ids_.try_emplace(std::move(key), terms_.size() + 1);
    if (fresh)
        terms_.push_back({term.kind, std::string(term.lexical), std::string(term.datatype), std::string(term.lang)});
    return it->second;
}

TermView TextTerms::view(TermId id, std::string&) const {
    if (id == kUnbound || id > terms_.size()) throw DataError("term id " + std::to_string(id) + " names nothing here");
    const Text& term = terms_[id - 1];
    return {term.kind, term.lexical, term.datatype, term.lang};
}

}  // namespace penstock
