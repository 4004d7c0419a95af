// Caches of the expressions of one evaluation, shared between calls. The ExprContext owns them. Every part is bounded
// or charged to the evaluation's budget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "expr/native_patterns.hpp"
#include "expr/value.hpp"
#include "rdf/term.hpp"

namespace penstock::expr {

/// The number of rows that an expression computes at a time: a column of values fits the first-level cache.
inline constexpr std::size_t kChunk = 256;

/// Parsed literals of the dictionary, by id: each is parsed once, not once per row. A full cache is cleared.
class ValueCache {
public:
    const Value* find(TermId id) const;
    void insert(TermId id, const Value& value);

private:
    static constexpr std::size_t kFirstSize = 64, kMaxSize = 16'384;
    std::size_t slot(TermId id) const { return (id * 0x9E3779B97F4A7C15ull) >> 20 & (slots_.size() - 1); }
    void rehash(std::size_t size);
    struct Slot {
        TermId id = kUnbound;
        Value value;
    };
    std::vector<Slot> slots_;
    std::size_t used_ = 0;
};

/// Results of functions implemented in Python, by name and arguments. A full memo is cleared.
class ForeignMemo {
public:
    const TermId* find(std::string_view key) const;
    void insert(std::string_view key, TermId result);

private:
    static constexpr std::size_t kMaxEntries = 65'536;
    struct Hash {
        using is_transparent = void;
        std::size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
    };
    std::unordered_map<std::string, TermId, Hash, std::equal_to<>> results_;
};

/// SplitMix64 (Steele et al., OOPSLA'14): RAND, UUID and STRUUID of one attempt.
class Random {
public:
    explicit Random(std::uint64_t seed) : state_(seed) {}
    std::uint64_t next();
    double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }  // [0, 1)

private:
    std::uint64_t state_;
};

/// The texts for which BNODE(text) has created blank nodes. Within one solution, all operators find the same node for
/// the same text (SPARQL 1.1 §17.4.2.9: one node per text and solution mapping).
class BlankKeys {
public:
    /// The number of the text; equal texts have equal numbers.
    std::uint32_t key(std::string_view text);
    void put(TermId blank, std::uint32_t key) {
        keys_.emplace(blank, key);
        bytes_ += kEntryBytes;
    }
    bool made_from(TermId blank, std::uint32_t key) const {
        const auto found = keys_.find(blank);
        return found != keys_.end() && found->second == key;
    }
    std::size_t bytes() const { return bytes_; }

private:
    static constexpr std::size_t kEntryBytes = 48;  // approximate size in a hash map
    std::size_t bytes_ = 0;
    std::unordered_map<std::string, std::uint32_t> numbers_;
    std::unordered_map<TermId, std::uint32_t> keys_;
};

/// Columns of kChunk values for intermediate results, reused.
class ColumnPool {
public:
    using Values = std::unique_ptr<Value[]>;
    Values take();
    void give(Values column) { free_.push_back(std::move(column)); }

private:
    std::vector<Values> free_;
};

struct Memory {
    explicit Memory(std::uint64_t seed) : random(seed) {}
    ValueCache values;
    ForeignMemo foreign;
    NativePatterns patterns;
    Random random;
    BlankKeys blanks;
    ColumnPool columns;
    std::size_t charged_bytes = 0;  // of the local terms, charged to the budget
};

}  // namespace penstock::expr
