// One call of an expression over a table: conversion between terms and values, texts, and access to the evaluation.
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

/// The maximum size in bytes of all texts that an expression computes in one chunk. A single text has the same limit.
inline constexpr std::size_t kMaxText = std::size_t{1} << 28;
/// Throws LimitError if a text exceeds kMaxText.
void check_text(std::size_t bytes);

/// Row numbers of the table, at most kChunk: the rows that a node computes.
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
    /// Sets the ids of values, for comparison with other terms' ids (LocalTerms::settle).
    void number(std::span<Value> values);
    /// If the dictionary is partial, fetches the missing terms of these columns in one request.
    void require(std::span<const Slot> slots) {
        if (context.terms.partial()) fetch(slots);
    }
    /// The term's text: the IRI, or the lexical form as written (canonical for computed values).
    std::string_view text(const Value& value);
    std::string_view datatype(const Value& value) const { return datatype_iri(value); }

    /// Allocates a computed text that is valid until the end of the chunk. LimitError if the chunk's texts exceed
    /// kMaxText or the budget.
    char* allocate(std::size_t bytes) {
        if (bytes > arena_.left()) account(bytes);
        return arena_.allocate(bytes);
    }
    std::string_view keep(std::string_view text) {
        char* out = allocate(text.size());
        std::copy(text.begin(), text.end(), out);
        return {out, text.size()};
    }

    /// Calls a function implemented in Python. Error if it fails or no implementation is set.
    Value foreign(std::string_view name, std::span<const Value> arguments);

    /// The blank node of BNODE(text) in the solution of the given row.
    TermId blank_of(std::uint32_t row, std::string_view text);

    /// For every row of the table, whether EXISTS holds. The sub-plan runs once per call of the expression.
    const std::vector<std::uint8_t>& exists(std::size_t subplan);

    /// Ends a chunk. Frees computed texts, checks the budget, and charges the remaining memory.
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
    std::unordered_map<std::uint64_t, TermId> row_blanks_;  // of this chunk, by row and text number
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
