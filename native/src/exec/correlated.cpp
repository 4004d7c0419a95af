// OPTIONAL, lateral joins, EXISTS.
#include <utility>

#include "exec/correlated.hpp"
#include "exec/kernels.hpp"

namespace penstock::exec {

namespace {

/// OPTIONAL: outer rows with their matches; an outer row without a match occurs once, unextended.
class Optional final : public Correlated {
public:
    Optional(const Spec& spec, Compiler& compiler) : Correlated(spec, compiler), from_inner_(*this) {
        schema_ = in_->schema();
        const Schema& inner = inner_->schema();
        for (std::size_t c = 0; c < schema_.slots.size(); ++c) from_.push_back(inner.index_of(schema_.slots[c]));
        for (std::size_t c = 0; c < inner.slots.size(); ++c) {
            if (c == row_column_ || schema_.index_of(inner.slots[c]) >= 0) continue;
            schema_.add(inner.slots[c], true);
            from_.push_back(static_cast<int>(c));
        }
        schema_.shape(table_);
        condition_ = compiler.expression_at(spec, "expr", schema_);
    }

private:
    struct FromInner final : Sink {
        explicit FromInner(Optional& self) : self(self) {}
        bool consume(Table& rows) override { return self.push_matches(rows); }
        Optional& self;
    };

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        current_ = &rows;
        matched_.assign(rows.rows, 0);
        more_ = true;
        run_inner(rows, from_inner_);
        return more_ && push_unmatched(rows);
    }

    bool push_matches(Table& inner) {
        outer_rows(inner, outer_of_);
        for (std::size_t c = 0; c < from_.size(); ++c) {
            table_.columns[c].clear();
            if (from_[c] < 0)
                gather(current_->columns[c], outer_of_, table_.columns[c]);
            else
                std::swap(table_.columns[c], inner.columns[static_cast<std::size_t>(from_[c])]);
        }
        table_.rows = inner.rows;
        if (condition_) {
            condition_->test(table_, run_->expressions, keep_);
            for (std::size_t i = 0; i < outer_of_.size(); ++i) matched_[outer_of_[i]] |= keep_[i];
            compact(table_, keep_);
            if (table_.rows == 0) return true;
        } else {
            for (std::uint32_t row : outer_of_) matched_[row] = 1;
        }
        return more_ = out_->push(table_);
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

    FromInner from_inner_;
    std::vector<int> from_;  // inner column by output column; -1 = the outer row's
    std::unique_ptr<Expression> condition_;
    const Table* current_ = nullptr;
    bool more_ = true;
    std::vector<std::uint8_t> matched_, keep_;
    std::vector<std::uint32_t> outer_of_;
    Table table_;
};

/// Correlated inner join: the inner side's rows are the result.
class Lateral final : public Correlated {
public:
    Lateral(const Spec& spec, Compiler& compiler) : Correlated(spec, compiler), from_inner_(*this) {
        schema_ = inner_->schema();
    }

private:
    struct FromInner final : Sink {
        explicit FromInner(Lateral& self) : self(self) {}
        bool consume(Table& rows) override { return self.more_ = self.out_->push(rows); }
        Lateral& self;
    };
    bool consume(Table& rows) override {
        run_->work(rows.rows);
        more_ = true;
        run_inner(rows, from_inner_);
        return more_;
    }
    FromInner from_inner_;
    bool more_ = true;
};

/// EXISTS and NOT EXISTS as an operator. If the inner side is a UNION, its inputs run one after the other. Each input
/// gets only the outer rows that have no match yet.
class Semijoin final : public Correlated {
public:
    Semijoin(const Spec& spec, Compiler& compiler)
        : Correlated(spec, compiler, inputs_of(spec.at("inner")).front()),
          from_inner_(*this),
          anti_(spec.find("anti") != nullptr && spec.at("anti").as_bool()) {
        schema_ = in_->schema();
        schema_.shape(left_);
        for (const Spec& input : inputs_of(spec.at("inner")).subspan(1)) {
            OperatorPtr root = compiler.inner(input, outer_);
            const std::size_t column = row_column(*root);
            further_.push_back({std::move(root), column});
        }
    }

private:
    struct FromInner final : Sink {
        explicit FromInner(Semijoin& self) : self(self) {}
        bool consume(Table& rows) override { return self.mark(rows); }
        Semijoin& self;
    };
    struct Input {
        OperatorPtr root;
        std::size_t row_column;
    };

    static std::span<const Spec> inputs_of(const Spec& inner) {
        if (inner.at("op").as_string() != "union") return {&inner, 1};
        const Spec::List& inputs = inner.at("inputs").as_list();
        if (inputs.empty()) throw Error("plan: a union without inputs");
        return inputs;
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        found_.assign(rows.rows, 0);
        missing_ = rows.rows;
        column_ = row_column_;
        left_rows_.clear();
        run_inner(rows, from_inner_);
        test_further(rows);
        if (anti_)
            for (std::uint8_t& flag : found_) flag ^= 1;
        compact(rows, found_);
        return rows.rows == 0 || out_->push(rows);
    }

    void test_further(const Table& rows) {
        const Table* tested = &rows;
        for (const Input& input : further_) {
            if (missing_ == 0) return;
            if (missing_ != tested->rows) {
                take_left(rows);
                tested = &left_;
            }
            column_ = input.row_column;
            outer_.rows = tested;
            input.root->run(*run_, from_inner_);
            outer_.first_row += tested->rows;
        }
    }

    /// Fills left_ with the rows that have no match yet.
    void take_left(const Table& rows) {
        left_rows_.clear();
        for (std::size_t i = 0; i < rows.rows; ++i)
            if (found_[i] == 0) left_rows_.push_back(static_cast<std::uint32_t>(i));
        for (std::size_t c = 0; c < rows.columns.size(); ++c) {
            left_.columns[c].clear();
            gather(rows.columns[c], left_rows_, left_.columns[c]);
        }
        left_.rows = left_rows_.size();
    }

    /// False once every outer row has a match.
    bool mark(const Table& inner) {
        outer_rows(inner, column_, outer_of_);
        for (std::uint32_t row : outer_of_) {
            if (!left_rows_.empty()) row = left_rows_[row];
            missing_ -= found_[row] == 0;
            found_[row] = 1;
        }
        return missing_ != 0;
    }

    FromInner from_inner_;
    bool anti_;
    std::vector<Input> further_;  // inputs of a UNION after the first one
    std::size_t missing_ = 0;
    std::size_t column_ = 0;           // of the row number, in the rows of the input that runs
    std::vector<std::uint8_t> found_;  // by outer row
    std::vector<std::uint32_t> outer_of_;
    std::vector<std::uint32_t> left_rows_;  // outer row by row of left_; empty: the input tests all outer rows
    Table left_;
};

}  // namespace

OperatorPtr make_optional(const Spec& spec, Compiler& compiler) { return std::make_unique<Optional>(spec, compiler); }
OperatorPtr make_lateral(const Spec& spec, Compiler& compiler) { return std::make_unique<Lateral>(spec, compiler); }
OperatorPtr make_semijoin(const Spec& spec, Compiler& compiler) { return std::make_unique<Semijoin>(spec, compiler); }

}  // namespace penstock::exec
