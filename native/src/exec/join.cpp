// Joins of independent sides: the right side is collected and hashed, the left side is streamed.
#include <utility>

#include "exec/compiler.hpp"
#include "exec/join_hash_table.hpp"

namespace penstock::exec {

namespace {

/// Common base: collects the right side once per run if it does not depend on outer rows, otherwise once per use.
class HashJoinBase : public Unary {
protected:
    HashJoinBase(OperatorPtr left, OperatorPtr right, const std::vector<Slot>& exact)
        : Unary(std::move(left)), right_(std::move(right)) {
        correlated_ = in_->correlated() || right_->correlated();
        const Schema &l = in_->schema(), &r = right_->schema();
        std::vector<JoinHashTable::Shared> shared;
        for (std::size_t c = 0; c < r.slots.size(); ++c) {
            int left_column = l.index_of(r.slots[c]);
            if (left_column < 0) {
                right_only_.push_back(c);
                continue;
            }
            bool nullable = l.nullable[static_cast<std::size_t>(left_column)] || r.nullable[c];
            bool is_exact = std::find(exact.begin(), exact.end(), r.slots[c]) != exact.end();
            shared.push_back({left_column, static_cast<int>(c), nullable, is_exact});
            if (l.nullable[static_cast<std::size_t>(left_column)])
                filled_.emplace_back(static_cast<std::size_t>(left_column), c);
        }
        hash_.configure(std::move(shared));
    }

    void begin() override {
        if (collected_in_ == run_->number && !right_->correlated()) return;
        hash_.release(*run_);
        collected_in_ = run_->number;
        hash_.begin(*run_, right_->schema());
        right_->run(*run_, hash_.rows());
    }
    void finish() override {
        if (!correlated_) release(*run_);  // otherwise it may run again
    }
    void release(Run& run) override {
        hash_.release(run);
        collected_in_ = 0;
    }

    /// Joins pairs of rows: left columns, then the columns that only the right side has.
    void joined(const Table& left, std::span<const std::uint32_t> l, std::span<const std::uint32_t> r,
                Table& out) const {
        const Table& right = hash_.table();
        for (Column& column : out.columns) column.clear();
        for (std::size_t c = 0; c < left.columns.size(); ++c) gather(left.columns[c], l, out.columns[c]);
        for (auto [to, from] : filled_)
            for (std::size_t i = 0; i < l.size(); ++i)
                if (out.columns[to][i] == kUnbound) out.columns[to][i] = right.columns[from][r[i]];
        for (std::size_t c = 0; c < right_only_.size(); ++c)
            gather(right.columns[right_only_[c]], r, out.columns[left.columns.size() + c]);
        out.rows = l.size();
    }
    void add_right_only(bool may_be_unbound) {
        for (std::size_t c : right_only_)
            schema_.add(right_->schema().slots[c], may_be_unbound || right_->schema().nullable[c]);
    }

    OperatorPtr right_;
    JoinHashTable hash_;
    std::vector<std::size_t> right_only_;
    std::vector<std::pair<std::size_t, std::size_t>> filled_;  // (left column that may be unbound, right column)
    Table table_;

private:
    std::uint64_t collected_in_ = 0;
};

class Join final : public HashJoinBase {
public:
    Join(OperatorPtr left, OperatorPtr right) : HashJoinBase(std::move(left), std::move(right), {}) {
        schema_ = in_->schema();
        for (auto [l, r] : filled_) schema_.nullable[l] = right_->schema().nullable[r];
        add_right_only(false);
        schema_.shape(table_);
    }

private:
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        if (hash_.table().rows == 0) return false;
        return hash_.join(*run_, rows, [&](std::span<const std::uint32_t> l, std::span<const std::uint32_t> r) {
            joined(rows, l, r, table_);
            return out_->push(table_);
        });
    }
};

class LeftJoin final : public HashJoinBase {
public:
    LeftJoin(OperatorPtr left, OperatorPtr right, const Spec& spec, Compiler& compiler)
        : HashJoinBase(std::move(left), std::move(right), {}) {
        schema_ = in_->schema();
        add_right_only(true);
        schema_.shape(table_);
        condition_ = compiler.expression_at(spec, "expr", schema_);
    }

private:
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        matched_.assign(rows.rows, 0);
        bool more = hash_.join(*run_, rows, [&](std::span<const std::uint32_t> l, std::span<const std::uint32_t> r) {
            joined(rows, l, r, table_);
            keep_.assign(l.size(), 1);
            if (condition_) condition_->test(table_, run_->expressions, keep_);
            for (std::size_t i = 0; i < l.size(); ++i) matched_[l[i]] |= keep_[i];
            compact(table_, keep_);
            return table_.rows == 0 || out_->push(table_);
        });
        return more && push_unmatched(rows);
    }

    bool push_unmatched(Table& rows) {
        for (std::uint8_t& flag : matched_) flag ^= 1;
        compact(rows, matched_);
        if (rows.rows == 0) return true;
        std::size_t carried = rows.columns.size();
        for (std::size_t c = 0; c < carried; ++c) std::swap(table_.columns[c], rows.columns[c]);
        for (std::size_t c = carried; c < table_.columns.size(); ++c) table_.columns[c].assign(rows.rows, kUnbound);
        table_.rows = rows.rows;
        return out_->push(table_);
    }

    std::unique_ptr<Expression> condition_;
    std::vector<std::uint8_t> keep_, matched_;
};

class Minus final : public HashJoinBase {
public:
    Minus(OperatorPtr left, OperatorPtr right, const std::vector<Slot>& ignore)
        : HashJoinBase(std::move(left), std::move(right), ignore) {
        schema_ = in_->schema();
    }

private:
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        hash_.mark(*run_, rows, removed_);
        for (std::uint8_t& flag : removed_) flag ^= 1;
        compact(rows, removed_);
        return rows.rows == 0 || out_->push(rows);
    }
    std::vector<std::uint8_t> removed_;
};

}  // namespace

OperatorPtr make_join(const Spec& spec, Compiler& compiler) {
    OperatorPtr left = compiler.child(spec, "left"), right = compiler.child(spec, "right");
    // Within a sub-plan, the side that does not depend on the outer rows is hashed once per run.
    if (right->correlated() && !left->correlated()) std::swap(left, right);
    return std::make_unique<Join>(std::move(left), std::move(right));
}

OperatorPtr make_left_join(const Spec& spec, Compiler& compiler) {
    OperatorPtr left = compiler.child(spec, "left"), right = compiler.child(spec, "right");
    return std::make_unique<LeftJoin>(std::move(left), std::move(right), spec, compiler);
}

OperatorPtr make_minus(const Spec& spec, Compiler& compiler) {
    OperatorPtr left = compiler.child(spec, "left"), right = compiler.child(spec, "right");
    std::vector<Slot> ignore;
    if (const Spec* slots = spec.find("ignore")) ignore = compiler.slot_list(*slots);
    return std::make_unique<Minus>(std::move(left), std::move(right), ignore);
}

}  // namespace penstock::exec
