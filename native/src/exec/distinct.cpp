// DISTINCT and REDUCED.
#include "exec/compiler.hpp"
#include "exec/kernels.hpp"
#include "exec/key_table.hpp"

namespace penstock::exec {

namespace {

/// First occurrences, in the input's order.
class Distinct final : public Unary {
public:
    explicit Distinct(OperatorPtr in) : Unary(std::move(in)) { schema_ = in_->schema(); }

private:
    void begin() override { seen_.reset(schema_.slots.size()); }
    void finish() override { seen_.release(run_->budget()); }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        auto next = static_cast<std::uint32_t>(seen_.size());
        keys_.clear();
        for (const Column& column : rows.columns) keys_.push_back(column.data());
        ids_.resize(rows.rows);
        seen_.assign(keys_, rows.rows, ids_.data(), run_->budget());
        keep_.resize(rows.rows);
        for (std::size_t i = 0; i < rows.rows; ++i) {
            keep_[i] = ids_[i] == next;
            next += keep_[i];
        }
        compact(rows, keep_);
        return rows.rows == 0 || out_->push(rows);
    }

    KeyTable seen_;
    std::vector<const TermId*> keys_;
    std::vector<std::uint32_t> ids_;
    std::vector<std::uint8_t> keep_;
};

/// REDUCED may drop duplicates; retaining them costs nothing.
class Reduced final : public Unary {
public:
    explicit Reduced(OperatorPtr in) : Unary(std::move(in)) { schema_ = in_->schema(); }

private:
    bool consume(Table& rows) override { return out_->push(rows); }
};

}  // namespace

OperatorPtr make_distinct(const Spec& spec, Compiler& compiler) {
    return std::make_unique<Distinct>(compiler.child(spec, "in"));
}
OperatorPtr make_reduced(const Spec& spec, Compiler& compiler) {
    return std::make_unique<Reduced>(compiler.child(spec, "in"));
}

}  // namespace penstock::exec
