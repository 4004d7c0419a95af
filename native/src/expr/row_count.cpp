#include "expr/row_count.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <vector>

#include "expr/distinct.hpp"
#include "expr/frame.hpp"
#include "expr/holding.hpp"
#include "expr/removable.hpp"

namespace penstock::expr {

namespace {

/// COUNT(*) and COUNT(DISTINCT *): count rows, not values.
class CountRows final : public RemovableAggregate {
public:
    explicit CountRows(bool distinct) : distinct_(distinct) {}

    void reset(std::size_t groups) override {
        counts_.assign(groups, 0);
        slots_.clear();
        computed_.clear();
        seen_.reset();
        occurs_.reset();
        tracks_ = false;
        lasting_ = true;
        holding_.forget();
    }
    void grow(std::size_t groups) override {
        if (groups > counts_.size()) counts_.resize(groups);
    }

    void add(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot> hidden,
             ExprContext& context) override {
        if (distinct_) return add_distinct(rows, group_of, hidden, 1, context);
        for (std::size_t i = 0; i < rows.rows; ++i) ++count_of(group_of[i]);
    }

    bool removable(const std::function<bool(Slot)>& computes) override {
        computes_ = computes;
        return true;
    }
    void track(bool tracks) override { tracks_ = tracks && distinct_; }
    bool lasting() const override { return lasting_; }
    void remove(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot> hidden,
                ExprContext& context) override {
        if (distinct_) return add_distinct(rows, group_of, hidden, -1, context);
        for (std::size_t i = 0; i < rows.rows; ++i) --count_of(group_of[i]);
    }
    void resume(ExprContext& context) override {
        holding_.forget();
        holding_.set(bytes(), context.budget);
    }
    std::size_t bytes() const override {
        return counts_.capacity() * sizeof(std::uint64_t) + (seen_ ? seen_->bytes() : 0) +
               (occurs_ ? occurs_->bytes() : 0);
    }
    void results(ExprContext& context, std::span<const std::uint32_t> groups, Column& out) override {
        static const Table no_rows;
        Frame frame(no_rows, context);
        out.resize(groups.size());
        for (std::size_t i = 0; i < groups.size(); ++i)
            out[i] = frame.intern(Value::integer(static_cast<Int128>(count_of(groups[i]))));
    }

    void finish(ExprContext& context, Column& out) override {
        static const Table no_rows;
        Frame frame(no_rows, context);
        out.resize(counts_.size());
        for (std::size_t group = 0; group < counts_.size(); ++group)
            out[group] = frame.intern(Value::integer(static_cast<Int128>(counts_[group])));
        holding_.set(0, context.budget);
    }

private:
    /// Adds rows (`by` = 1) or removes them (-1). `hidden`: as in add().
    void add_distinct(const Table& rows, std::span<const std::uint32_t> group_of, std::span<const Slot> hidden,
                      std::int32_t by, ExprContext& context) {
        if (!seen_ && !occurs_) choose_slots(rows, hidden);
        for (const Slot slot : computed_)
            if (const Column* column = rows.find(slot); tracks_ && column != nullptr)
                for (const TermId id : std::span(*column).first(rows.rows)) lasting_ &= is_lasting(id);
        std::vector<const Column*> columns;
        columns.reserve(slots_.size());
        for (const Slot slot : slots_) columns.push_back(rows.find(slot));
        const std::size_t width = columns.size() + 1;
        cells_.resize(rows.rows * width);
        for (std::size_t i = 0; i < rows.rows; ++i) {
            TermId* const row = cells_.data() + i * width;
            row[0] = group_of[i];
            for (std::size_t c = 0; c < columns.size(); ++c) row[c + 1] = columns[c] ? (*columns[c])[i] : kUnbound;
        }
        const auto row = [&](std::size_t i) { return std::span<const TermId>(cells_.data() + i * width, width); };
        if (tracks_)
            count_rows(rows.rows, row, by);
        else
            for (std::size_t i = 0; i < rows.rows; ++i) count_of(group_of[i]) += seen_->insert(row(i)) ? 1 : 0;
        holding_.set(bytes(), context.budget);
    }
    template <class Row>
    void count_rows(std::size_t rows, Row row, std::int32_t by) {
        hashes_.resize(rows);
        for (std::size_t i = 0; i < rows; ++i) hashes_[i] = hash_of(row(i));
        for (std::size_t i = 0; i < rows; ++i) {
            occurs_->look_ahead(hashes_, i);
            if (occurs_->add(row(i), hashes_[i], by) == (by > 0 ? 1 : 0))  // it is new, or was the last one
                count_of(static_cast<std::uint32_t>(row(i)[0])) += static_cast<std::uint64_t>(std::int64_t{by});
        }
    }
    std::uint64_t& count_of(std::uint32_t group) {
        if (group >= counts_.size()) counts_.resize(group + 1);
        return counts_[group];
    }
    void choose_slots(const Table& rows, std::span<const Slot> hidden) {
        for (const Slot slot : rows.slots)
            if (std::find(hidden.begin(), hidden.end(), slot) == hidden.end()) slots_.push_back(slot);
        for (const Slot slot : slots_)
            if (computes_ && computes_(slot)) computed_.push_back(slot);
        if (tracks_)
            occurs_.emplace(slots_.size() + 1);
        else
            seen_.emplace(slots_.size() + 1);
    }

    bool distinct_;
    std::vector<std::uint64_t> counts_;
    std::vector<Slot> slots_, computed_;
    std::function<bool(Slot)> computes_;  // whether the values of a slot are computed
    std::optional<RowSet> seen_;
    // While rows may be removed.
    bool tracks_ = false, lasting_ = true;
    std::optional<RowCounts> occurs_;
    std::vector<TermId> cells_;          // rows of a table, with their groups
    std::vector<std::uint64_t> hashes_;  // of these rows
    Holding holding_;
};

}  // namespace

std::unique_ptr<Aggregate> make_row_count(bool distinct) { return std::make_unique<CountRows>(distinct); }

}  // namespace penstock::expr
