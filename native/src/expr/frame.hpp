// One call of an expression over a table: terms to values and back, texts, and what functions may ask for.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "exec/table.hpp"
#include "expr/arena.hpp"
#include "expr/expression.hpp"
#include "expr/memory.hpp"
#include "expr/value.hpp"

namespace penstock::expr {

/// Bytes of text that one chunk of an expression may compute, and that one text may have.
inline constexpr std::size_t kMaxText = std::size_t{1} << 28;
/// Throws LimitError where a text has grown beyond kMaxText.
void check_text(std::size_t bytes);

/// Numbers of the table's rows that a node is asked for, at most kChunk.
using Rows = std::span<const std::uint32_t>;

class Frame {
public:
    Frame(const Table& table, ExprContext& context);

    const Table& table;
    ExprContext& context;
    Memory& memory;

    Value decode(TermId id) {
        Value out;
        decode(id, out);
        return out;
    }
    void decode(TermId id, Value& out);
    TermId intern(const Value& value);
    /// Sets the ids of values, as they are compared with other terms' ids by equality (LocalTerms::settle).
    void number(std::span<Value> values);
    /// Over a partial dictionary: fetches what is missing of the terms in these columns, all at once.
    void require(std::span<const Slot> slots) {
        if (context.terms.partial()) fetch(slots);
    }
    /// The term's own text: the IRI or the lexical form as written (canonical for computed values).
    std::string_view text(const Value& value);
    std::string_view datatype(const Value& value) const { return datatype_iri(value); }

    /// Room for a computed text until the chunk is over. LimitError where the chunk's texts exceed kMaxText or the
    /// budget.
    char* allocate(std::size_t bytes) {
        if (bytes > arena_.left()) account(bytes);
        return arena_.allocate(bytes);
    }
    std::string_view keep(std::string_view text) {
        char* out = allocate(text.size());
        std::copy(text.begin(), text.end(), out);
        return {out, text.size()};
    }

    /// A function that is left to Python; Error where it fails or no one answers for it.
    Value foreign(std::string_view name, std::span<const Value> arguments);

    /// The blank node of BNODE(text) in the solution of that row.
    TermId blank_of(std::uint32_t row, std::string_view text);

    /// Where EXISTS holds, for every row of the table: the sub-plan runs once a call.
    const std::vector<std::uint8_t>& exists(std::size_t subplan);

    /// Ends a chunk: computed texts go, the budget is checked and charged for what stays.
    void end_chunk();

private:
    void decode_dictionary(TermId id, Value& out);
    void fetch(std::span<const Slot> slots);
    void account(std::size_t bytes);
    Arena arena_;
    std::size_t charged_texts_ = 0;
    std::string scratch_;
    std::string foreign_key_;
    std::unordered_map<std::size_t, std::vector<std::uint8_t>> exists_;
    std::unordered_map<std::uint64_t, TermId> row_blanks_;  // of this chunk, by row and number of the text
};

/// A column of intermediate values, borrowed from the pool.
class ValueColumn {
public:
    explicit ValueColumn(Frame& frame) : pool_(frame.memory.columns), values_(pool_.take()) {}
    ~ValueColumn() { pool_.give(std::move(values_)); }
    ValueColumn(const ValueColumn&) = delete;
    ValueColumn& operator=(const ValueColumn&) = delete;

    Value* data() { return values_.get(); }
    Value& operator[](std::size_t i) { return values_[i]; }

private:
    ColumnPool& pool_;
    ColumnPool::Values values_;
};

}  // namespace penstock::expr
