#include "expr/aggregate_states.hpp"

#include <algorithm>

#include "expr/arithmetic.hpp"
#include "expr/compare.hpp"

namespace penstock::expr {

void SumState::update(const Value& value, int sign) {
    const auto by = static_cast<std::uint64_t>(std::int64_t{sign});
    if (!value.numeric()) {
        errors_ += by;
        return;
    }
    counts_[static_cast<std::size_t>(value.type) - static_cast<std::size_t>(ValueType::Integer)] += by;
    if (value.type < ValueType::Float) {
        Decimal exact = value.decimal();
        if (sign < 0) exact.mantissa = -exact.mantissa;
        exact_.add(exact);
        return;
    }
    if (!reals_) reals_ = std::make_unique<ExactDoubleSum>();
    if (sign > 0)
        reals_->add(value.real);
    else
        reals_->remove(value.real);
}

std::uint64_t SumState::count() const { return counts_[0] + counts_[1] + counts_[2] + counts_[3]; }

ValueType SumState::widest() const {
    std::size_t type = counts_.size() - 1;
    while (type > 0 && counts_[type] == 0) --type;
    return static_cast<ValueType>(static_cast<std::size_t>(ValueType::Integer) + type);
}

Value SumState::sum() const {
    const auto exact = exact_.total();
    if (!exact) return {};
    const ValueType widest = this->widest();
    if (widest == ValueType::Integer) return Value::integer(exact->mantissa);
    if (widest == ValueType::Decimal) return Value::decimal(*exact);
    ExactDoubleSum all = *reals_;
    const bool to_float = widest == ValueType::Float;
    if (exact->mantissa != 0) all.add(to_float ? expr::to_float(*exact) : to_double(*exact));
    return Value::of_real(widest, all.total(to_float));
}

Value AverageState::result(Frame&, const AggregateOptions&) const {
    if (errors_ != 0) return {};
    const std::uint64_t terms = count();
    if (terms == 0) return Value::integer(0);
    return compute(Arithmetic::Divide, sum(), Value::integer(static_cast<Int128>(terms)));
}

template <int sign>
void ExtremeState<sign>::add(const Value& value, Frame& frame) {
    if (value.error()) {
        error_ = true;
        return;
    }
    if (!best_.error()) {
        int order = compare(value, frame);
        if (order > 0) return;
        if (order == 0) {
            Value candidate = value;
            candidate.id = frame.intern(value);
            order = sign * term_order(candidate, best_, frame.context.terms);
            if (order >= 0) return;
        }
    }
    best_ = value;
    best_.id = frame.intern(value);
}

/// Negative if the value comes before the best one.
template <int sign>
int ExtremeState<sign>::compare(const Value& value, Frame& frame) {
    // Computed texts of the last chunk are freed; those of a term can be decoded again.
    if (!best_.numeric()) frame.decode(best_.id, best_);
    const bool integers = value.type == ValueType::Integer && best_.type == ValueType::Integer;
    return sign *
           (integers ? (value.number > best_.number) - (value.number < best_.number) : value_order(value, best_));
}

template <int sign>
bool ExtremeState<sign>::depends_on(const Value& value, Frame& frame) {
    return best_.error() || compare(value, frame) <= 0;
}

template <int sign>
Value ExtremeState<sign>::result(Frame&, const AggregateOptions&) const {
    return error_ ? Value{} : best_;
}

template class ExtremeState<1>;
template class ExtremeState<-1>;

void GroupConcatState::add(const Value& value, Frame& frame) {
    if (value.error() || value.type == ValueType::Blank)
        error_ = true;
    else
        terms_.push_back(frame.intern(value));
}

Value GroupConcatState::result(Frame& frame, const AggregateOptions& options) const {
    if (error_) return {};
    std::vector<Value> sorted;
    sorted.reserve(terms_.size());
    for (const TermId term : terms_) sorted.push_back(frame.decode(term));
    const LocalTerms& terms = frame.context.terms;
    std::sort(sorted.begin(), sorted.end(),
              [&](const Value& a, const Value& b) { return term_order(a, b, terms) < 0; });
    std::string scratch, out;
    for (std::size_t i = 0; i < sorted.size(); ++i) {
        if (i > 0) out += options.separator;
        out += terms.view(sorted[i].id, scratch).lexical;
        check_text(out.size());
        if (i % kChunk == 0) frame.context.budget.check();
    }
    return Value::string(frame.keep(out));
}

}  // namespace penstock::expr
