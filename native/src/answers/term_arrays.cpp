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

constexpr std::size_t kBlock = 128;  // terms whose cache misses overlap

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
        check_size(term.lexical);
        out_.kinds.push_back(static_cast<std::uint8_t>(term.kind));
        out_.lexicals.push(term.lexical);
    }
    /// Adds `count` successive IRIs of another column.
    void copy(const TextColumnView& lexicals, std::size_t first, std::size_t count) {
        const std::string_view last = lexicals[first + count - 1];
        const std::string_view texts(lexicals[first].data(), last.data() + last.size());
        const std::size_t before = out_.lexicals.bytes.size();
        check_size(texts);
        out_.lexicals.bytes.insert(out_.lexicals.bytes.end(), texts.begin(), texts.end());
        for (std::size_t i = first; i < first + count; ++i) {
            const char* const end = lexicals[i].data() + lexicals[i].size();
            out_.lexicals.offsets.push_back(
                static_cast<std::int32_t>(before + static_cast<std::size_t>(end - texts.data())));
        }
        out_.kinds.insert(out_.kinds.end(), count, static_cast<std::uint8_t>(Kind::Iri));
    }
    /// Reserves room for all texts, on the assumption that they are as long as the ones so far.
    void reserve() {
        const std::size_t bytes = out_.lexicals.bytes.size(), likely = bytes / out_.kinds.size() * size_;
        out_.lexicals.bytes.reserve(bytes + likely + likely / 8);
    }

private:
    void check_size(std::string_view more) const {
        if (out_.lexicals.bytes.size() + more.size() > std::numeric_limits<std::int32_t>::max())
            throw LimitError("a column of texts exceeds 2 GiB");
    }

    TermArrays& out_;
    std::size_t size_;
    Names datatypes_, langs_;
};

constexpr std::uint32_t kNone = 0xFFFFFFFF;

/// Finds the rows of a column in an earlier one, in one pass over both.
class EarlierRows {
public:
    EarlierRows(std::span<const TermId> ids, std::span<const TermId> members, const EarlierColumn& earlier)
        : ids_(ids), members_(members), earlier_(earlier) {
        const std::size_t rows = earlier.ids.size();
        if (members.size() != ids.size() || earlier.members.size() != rows || earlier.lexicals.size() != rows)
            throw DataError("columns of an answer differ in length");
    }

    /// The row of the earlier column with the same member and IRI as row i; kNone if it is not found. To be called with
    /// ascending i. Of a member with many rows, only those next to the last row found are compared.
    std::uint32_t find(std::size_t i) {
        const TermId member = members_[i], id = ids_[i];
        if (tag_of(id) != Tag::Iri || id == kUnbound) return kNone;
        if (is_of(next_, member) && earlier_.ids[next_] == id) return static_cast<std::uint32_t>(next_++);
        while (next_ < size() && earlier_.members[next_] < member) ++next_;
        std::size_t at = next_;
        while (at > 0 && next_ - at < kNear && is_of(at - 1, member)) --at;
        for (; at < next_ + kNear && is_of(at, member); ++at) {
            if (earlier_.ids[at] != id) continue;
            next_ = at + 1;
            return static_cast<std::uint32_t>(at);
        }
        if (at == next_ + kNear) next_ = at;  // the member has more rows
        return kNone;
    }
    const TextColumnView& lexicals() const { return earlier_.lexicals; }

private:
    static constexpr std::size_t kNear = 8;
    std::size_t size() const { return earlier_.ids.size(); }
    bool is_of(std::size_t row, TermId member) const { return row < size() && earlier_.members[row] == member; }

    std::span<const TermId> ids_, members_;
    const EarlierColumn& earlier_;
    std::size_t next_ = 0;  // the row after the last one found, or the first one of a later member
};

/// Some successive terms, and where their texts are.
struct Block {
    std::span<const TermId> ids;
    std::array<std::uint32_t, kBlock> earlier;      // rows of the earlier column
    std::array<const TermRecord*, kBlock> records;  // of the terms that are not there, in order

    void find(std::span<const TermId> all, std::size_t from, const TermTexts& terms, EarlierRows* rows) {
        ids = all.subspan(from, std::min(kBlock, all.size() - from));
        if (rows == nullptr) {
            earlier.fill(kNone);
            return terms.records(ids, records.data());
        }
        std::array<TermId, kBlock> sought;
        std::size_t count = 0;
        for (std::size_t i = 0; i < ids.size(); ++i) {
            earlier[i] = rows->find(from + i);
            sought[count] = ids[i];
            count += earlier[i] == kNone ? 1 : 0;
        }
        terms.records({sought.data(), count}, records.data());
    }
    /// The number of successive terms from i on that are successive in the earlier column, too.
    std::size_t run(std::size_t i) const {
        std::size_t end = i + 1;
        while (end < ids.size() && earlier[end] != kNone && earlier[end] == earlier[end - 1] + 1) ++end;
        return end - i;
    }
};

TermArrays arrays_of(std::span<const TermId> ids, const TermTexts& terms, EarlierRows* rows) {
    if (terms.partial()) terms.require(ids);
    TermArrays out;
    Writer writer(out, ids.size());
    std::string scratch;
    Block blocks[2];
    blocks[0].find(ids, 0, terms, rows);
    for (std::size_t from = 0, number = 0; from < ids.size(); from += kBlock, ++number) {
        const Block& block = blocks[number % 2];
        blocks[(number + 1) % 2].find(ids, from + block.ids.size(), terms, rows);
        const TermRecord* const* next = block.records.data();
        for (std::size_t i = 0, run = 1; i < block.ids.size(); i += run, run = 1) {
            if (block.earlier[i] != kNone) {
                run = block.run(i);
                writer.copy(rows->lexicals(), block.earlier[i], run);
                continue;
            }
            const TermId id = block.ids[i];
            const TermRecord* const record = *next++;
            if (id == kUnbound)
                writer.add(TermView{});
            else if (record != nullptr && (tag_of(id) == record->tag() || tag_of(id) == Tag::Local))
                writer.add(record->view());
            else
                writer.add(terms.view(id, scratch));
        }
        if (from == 0) writer.reserve();
    }
    return out;
}

}  // namespace

TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms) { return arrays_of(ids, terms, nullptr); }

TermArrays term_arrays(std::span<const TermId> ids, const TermTexts& terms, std::span<const TermId> members,
                       const EarlierColumn& earlier) {
    EarlierRows rows(ids, members, earlier);
    return arrays_of(ids, terms, &rows);
}

}  // namespace penstock
