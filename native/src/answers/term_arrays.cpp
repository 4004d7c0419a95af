#include "answers/term_arrays.hpp"

#include <limits>

#include "errors.hpp"

namespace penstock {
namespace {

constexpr std::size_t kAhead = 16;  // terms between two hints

/// The few datatypes and languages of a column, numbered. Remembers the last one, because columns repeat it.
class Names {
public:
    explicit Names(std::vector<std::string>& names) : names_(names) {}
    std::int32_t number(std::string_view name) {
        if (name.empty()) return -1;
        if (last_ >= 0 && names_[static_cast<std::size_t>(last_)] == name) return last_;
        const auto [found, fresh] = numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
        if (fresh) names_.emplace_back(name);
        return last_ = found->second;
    }

private:
    std::vector<std::string>& names_;
    std::unordered_map<std::string, std::int32_t> numbers_;
    std::int32_t last_ = -1;
};

}  // namespace

TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms) {
    if (terms.partial()) terms.require(ids);
    TermArrays out;
    out.kinds.reserve(ids.size());
    out.datatypes.reserve(ids.size());
    out.langs.reserve(ids.size());
    out.lexicals.offsets.reserve(ids.size() + 1);
    Names datatypes(out.names), langs(out.names);
    std::string scratch;
    for (std::size_t i = 0; i < ids.size(); ++i) {
        if (i + 2 * kAhead < ids.size()) terms.prefetch_entry(ids[i + 2 * kAhead]);
        if (i + kAhead < ids.size()) terms.prefetch_text(ids[i + kAhead]);
        const TermId id = ids[i];
        const TermView term = id == kUnbound ? TermView{} : terms.view(id, scratch);
        if (out.lexicals.bytes.size() + term.lexical.size() > std::numeric_limits<std::int32_t>::max())
            throw LimitError("a column of texts exceeds 2 GiB");
        out.kinds.push_back(static_cast<std::uint8_t>(term.kind));
        out.lexicals.push(term.lexical);
        out.datatypes.push_back(term.kind == Kind::Literal ? datatypes.number(term.datatype) : -1);
        out.langs.push_back(langs.number(term.lang));
    }
    return out;
}

}  // namespace penstock
