// Terms that arrived as text, numbered from 1. They are the terms of an answer that another process has written.
#pragma once

#include <deque>
#include <string>
#include <unordered_map>

#include "rdf/term_texts.hpp"

namespace penstock {

class TextTerms final : public TermTexts {
public:
    /// The number of a term, the same for equal terms. Blank nodes may have any label.
    TermId id_of(const TermView& term);
    TermView view(TermId id, std::string& scratch) const override;
    bool partial() const override { return false; }
    void require(std::span<const TermId>) const override {}

private:
    struct Text {
        Kind kind;
        std::string lexical, datatype, lang;
    };
    std::deque<Text> terms_;
    std::unordered_map<std::string, TermId> ids_;  // by kind, lexical form, datatype and language
};

}  // namespace penstock
