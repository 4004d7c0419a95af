#include "expr/aggregate_states.hpp"

#include <algorithm>

#include "expr/arithmetic.hpp"
#include "expr/compare.hpp"

namespace penstock::expr {

void SumState::add(const Value& value, Frame&) {
    if (!value.numeric()) {
        error_ = true;
        return;
    }
    ++count_;
    widest_ = std::max(widest_, value.type);
    if (value.type < ValueType::Float) {
        exact_.add(value.decimal());
        return;
    }
    if (!reals_) reals_ = std::make_unique<ExactDoubleSum>();
    reals_->add(value.real);
}

Value SumState::sum() const {
    const auto exact = exact_.total();
    if (!exact) return {};
    if (widest_ == ValueType::Integer) return Value::integer(exact->mantissa);
    if (widest_ == ValueType::Decimal) return Value::decimal(*exact);
    ExactDoubleSum all = *reals_;
    const bool to_float = widest_ == ValueType::Float;
    if (exact->mantissa != 0) all.add(to_float ? expr::to_float(*exact) : to_double(*exact));
    return Value::of_real(widest_, all.total(to_float));
}

Value AverageState::result(Frame&, const AggregateOptions&) const {
    if (error_) return {};
    if (count_ == 0) return Value::integer(0);
    return compute(Arithmetic::Divide, sum(), Value::integer(static_cast<Int128>(count_)));
}

template <int sign>
void ExtremeState<sign>::add(const Value& value, Frame& frame) {
    if (value.error()) {
        error_ = true;
        return;
    }
    if (!best_.error()) {
        // Computed texts of the last chunk are freed; those of a term can be decoded again.
        if (!best_.numeric()) frame.decode(best_.id, best_);
        const bool integers = value.type == ValueType::Integer && best_.type == ValueType::Integer;
        int order =
            integers ? (value.number > best_.number) - (value.number < best_.number) : value_order(value, best_);
        order *= sign;
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
