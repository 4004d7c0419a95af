// OFFSET and LIMIT, of the whole result, or separately for each member and each graph.
#include <algorithm>
#include <limits>
#include <vector>

#include "exec/compiler.hpp"
#include "exec/kernels.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

namespace {

constexpr std::uint64_t kNoLimit = std::numeric_limits<std::uint64_t>::max();

/// Rows [offset, end) of the input.
class Slice final : public Unary {
public:
    Slice(OperatorPtr in, std::uint64_t offset, std::uint64_t end) : Unary(std::move(in)), offset_(offset), end_(end) {
        schema_ = in_->schema();
    }

private:
    void begin() override { seen_ = 0; }
    bool consume(Table& rows) override {
        std::uint64_t first = seen_;
        seen_ += rows.rows;
        if (first < offset_ || seen_ > end_) {
            keep_.resize(rows.rows);
            for (std::size_t i = 0; i < rows.rows; ++i) keep_[i] = first + i >= offset_ && first + i < end_;
            compact(rows, keep_);
        }
        return (rows.rows == 0 || out_->push(rows)) && seen_ < end_;
    }
    std::uint64_t offset_, end_, seen_ = 0;
    std::vector<std::uint8_t> keep_;
};

/// The same for the rows of each key: the member, the graph of an enclosing GRAPH ?g, or both.
class KeyedSlice final : public Unary {
public:
    /// `from_seed`: each key is a row of the seed, so the slice is complete once every key is.
    KeyedSlice(OperatorPtr in, std::vector<std::size_t> columns, bool from_seed, std::uint64_t offset,
               std::uint64_t end)
        : Unary(std::move(in)), columns_(std::move(columns)), from_seed_(from_seed), offset_(offset), end_(end) {
        schema_ = in_->schema();
    }

private:
    void begin() override {
        keys_.reset(columns_.size());
        seen_.clear();
        finished_ = 0;
    }
    void finish() override { keys_.release(run_->budget()); }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        cells_.clear();
        for (std::size_t column : columns_) cells_.push_back(rows.columns[column].data());
        ids_.resize(rows.rows);
        keys_.assign(cells_, rows.rows, ids_.data(), run_->budget());
        seen_.resize(keys_.size(), 0);
        keep_.resize(rows.rows);
        for (std::size_t i = 0; i < rows.rows; ++i) {
            std::uint64_t position = seen_[ids_[i]]++;
            keep_[i] = position >= offset_ && position < end_;
            finished_ += position + 1 == end_;
        }
        compact(rows, keep_);
        bool more = rows.rows == 0 || out_->push(rows);
        return more && !(from_seed_ && finished_ >= run_->seed.rows);  // the seed has a row for each member
    }

    std::vector<std::size_t> columns_;
    bool from_seed_;
    std::uint64_t offset_, end_;
    KeyTable keys_;
    std::vector<const TermId*> cells_;
    std::vector<std::uint64_t> seen_;
    std::size_t finished_ = 0;
    std::vector<std::uint32_t> ids_;
    std::vector<std::uint8_t> keep_;
};

}  // namespace

OperatorPtr make_slice(const Spec& spec, Compiler& compiler) {
    OperatorPtr in = compiler.child(spec, "in");
    std::uint64_t offset = 0, end = kNoLimit;
    if (const Spec* given = spec.find("offset")) offset = given->as_int();
    if (const Spec* limit = spec.find("limit"))
        end = limit->as_int() > kNoLimit - offset ? kNoLimit : offset + limit->as_int();
    std::vector<std::size_t> columns;
    bool from_seed = true;
    for (const char* key : {"member", "graph"}) {
        const int slot = compiler.slot_at(spec, key);
        if (slot < 0) continue;
        const int column = in->schema().index_of(static_cast<Slot>(slot));
        if (column < 0) throw Error(std::string("plan: 'slice' over rows without their ") + key);
        columns.push_back(static_cast<std::size_t>(column));
        from_seed = from_seed && compiler.seed().index_of(static_cast<Slot>(slot)) >= 0;
    }
    if (!columns.empty())
        return std::make_unique<KeyedSlice>(std::move(in), std::move(columns), from_seed, offset, end);
    return std::make_unique<Slice>(std::move(in), offset, end);
}

}  // namespace penstock::exec
