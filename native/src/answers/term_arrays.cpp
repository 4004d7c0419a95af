#include "answers/term_arrays.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "errors.hpp"
#include "rdf/term_record.hpp"

namespace penstock {
namespace {

constexpr std::size_t kBlock = 64;  // terms whose cache misses overlap

/// The few datatypes or languages of a column, numbered.
class Names {
public:
    /// `places`: of the terms of the column, which has `size` terms.
    Names(std::vector<std::string>& names, std::vector<std::int32_t>& places, std::size_t size)
        : names_(names), places_(places), size_(size) {}

    /// Sets the name of term i; must be called with ascending i, and only for terms that have one.
    void set(std::size_t i, std::string_view name) {
        if (places_.empty()) places_.assign(size_, -1);
        if (last_ < 0 || names_[static_cast<std::size_t>(last_)] != name) last_ = number(name);
        places_[i] = last_;
    }

private:
    std::int32_t number(std::string_view name) {
        const auto [found, fresh] = numbers_.try_emplace(std::string(name), static_cast<std::int32_t>(names_.size()));
        if (fresh) names_.emplace_back(name);
        return found->second;
    }

    std::vector<std::string>& names_;
    std::vector<std::int32_t>& places_;
    std::size_t size_;
    std::unordered_map<std::string, std::int32_t> numbers_;
    std::int32_t last_ = -1;  // columns repeat names
};

/// Appends terms to the arrays of a column of `size` terms.
class Writer {
public:
    Writer(TermArrays& out, std::size_t size)
        : out_(out), size_(size), datatypes_(out.names, out.datatypes, size), langs_(out.names, out.langs, size) {
        out.kinds.reserve(size);
        out.lexicals.offsets.reserve(size + 1);
    }

    void add(const TermView& term) {
        if (term.kind == Kind::Literal && !term.datatype.empty()) datatypes_.set(out_.kinds.size(), term.datatype);
        if (!term.lang.empty()) langs_.set(out_.kinds.size(), term.lang);
        if (out_.lexicals.bytes.size() + term.lexical.size() > std::numeric_limits<std::int32_t>::max())
            throw LimitError("a column of texts exceeds 2 GiB");
        out_.kinds.push_back(static_cast<std::uint8_t>(term.kind));
        out_.lexicals.push(term.lexical);
    }
    /// Reserves room for all texts, on the assumption that they are as long as the ones so far.
    void reserve() {
        const std::size_t bytes = out_.lexicals.bytes.size(), likely = bytes / out_.kinds.size() * size_;
        out_.lexicals.bytes.reserve(bytes + likely + likely / 8);
    }

private:
    TermArrays& out_;
    std::size_t size_;
    Names datatypes_, langs_;
};

}  // namespace

TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms) {
    if (terms.partial()) terms.require(ids);
    TermArrays out;
    Writer writer(out, ids.size());
    std::string scratch;
    std::array<const TermRecord*, kBlock> records, following;
    const auto block = [ids](std::size_t from) { return ids.subspan(from, std::min(kBlock, ids.size() - from)); };
    terms.records(block(0), following.data());
    for (std::size_t from = 0; from < ids.size(); from += kBlock) {
        const auto now = block(from);
        records = following;
        terms.records(block(from + now.size()), following.data());
        for (std::size_t i = 0; i < now.size(); ++i) {
            const TermRecord* const record = records[i];
            if (now[i] == kUnbound)
                writer.add(TermView{});
            else if (record != nullptr && (tag_of(now[i]) == record->tag() || tag_of(now[i]) == Tag::Local))
                writer.add(record->view());
            else
                writer.add(terms.view(now[i], scratch));
        }
        if (from == 0) writer.reserve();
    }
    return out;
}

}  // namespace penstock
