// Stands in for the dictionary until it is there. Weak: the real one wins.
#pragma once
#include <map>
#include <tuple>
#include <vector>

#include "rdf/dictionary.hpp"
#include "rdf/inline_literal.hpp"

namespace penstock {
struct Dictionary::Impl {};
struct LocalTerms::Impl {
    const Dictionary* d;
    std::map<std::tuple<int, std::string, std::string, std::string>, TermId> ids;
    std::vector<std::tuple<int, std::string, std::string, std::string>*> keep;
    std::vector<const std::tuple<int, std::string, std::string, std::string>*> all;
};
#define WEAK __attribute__((weak))
WEAK Dictionary::Dictionary() {}
WEAK Dictionary::~Dictionary() = default;
WEAK LocalTerms::LocalTerms(const Dictionary& d) : impl_(new Impl{&d, {}, {}, {}}) {}
WEAK LocalTerms::~LocalTerms() = default;
WEAK TermId LocalTerms::intern(const TermView& t) {
    if (t.kind == Kind::Literal)
        if (TermId id = encode_inline(t.lexical, t.datatype, t.lang)) return id;
    auto [it, added] =
        impl_->ids.try_emplace({int(t.kind), std::string(t.lexical), std::string(t.datatype), std::string(t.lang)}, 0);
    if (added) {
        impl_->all.push_back(&it->first);
        it->second = make_id(t.kind == Kind::Iri ? Tag::Iri : Tag::Literal, impl_->all.size());
    }
    return it->second;
}
WEAK TermId LocalTerms::fresh_blank() {
    static int n = 0;
    return make_id(Tag::Blank, static_cast<std::uint64_t>(++n));
}
WEAK TermView LocalTerms::view(TermId id, std::string& scratch) const {
    if (tag_of(id) == Tag::Iri || tag_of(id) == Tag::Literal) {
        const auto& [k, l, d, g] = *impl_->all[payload_of(id) - 1];
        return {Kind(k), l, d, g};
    }
    return decode_inline(id, scratch);
}
WEAK std::size_t LocalTerms::size() const { return 0; }
WEAK std::size_t LocalTerms::bytes() const { return impl_->all.size() * 100; }
WEAK const Dictionary& LocalTerms::dictionary() const { return *impl_->d; }
}  // namespace penstock
