#include "expr/expression.hpp"

#include <algorithm>
#include <array>
#include <numeric>

#include "expr/looked_at.hpp"
#include "expr/node.hpp"

namespace penstock {
namespace {

using namespace expr;

/// Calls `chunk` with the row numbers of a table, kChunk at a time.
template <class Chunk>
void for_each_chunk(Frame& frame, const Chunk& chunk) {
    std::array<std::uint32_t, kChunk> numbers;
    for (std::size_t from = 0; from < frame.table.rows; from += kChunk) {
        const std::size_t size = std::min(kChunk, frame.table.rows - from);
        std::iota(numbers.begin(), numbers.begin() + static_cast<std::ptrdiff_t>(size),
                  static_cast<std::uint32_t>(from));
        chunk(from, Rows(numbers.data(), size));
        frame.end_chunk();
    }
}

class CompiledExpression final : public Expression {
public:
    explicit CompiledExpression(const Spec& spec) : root_(compile_node(spec)), looked_at_(expr::looked_at(spec)) {}

    void evaluate(const Table& rows, ExprContext& context, Column& out) const override {
        out.resize(rows.rows);
        Frame frame(rows, context);
        if (const auto ids = IdColumn::of(*root_, frame)) {
            for (std::size_t i = 0; i < rows.rows; ++i) out[i] = (*ids)[static_cast<std::uint32_t>(i)];
            return;
        }
        frame.require(looked_at_);
        ValueColumn values(frame);
        for_each_chunk(frame, [&](std::size_t from, Rows numbers) {
            root_->evaluate(frame, numbers, values.data());
            for (std::size_t k = 0; k < numbers.size(); ++k) out[from + k] = frame.intern(values[k]);
        });
    }

    void test(const Table& rows, ExprContext& context, std::vector<std::uint8_t>& keep) const override {
        keep.resize(rows.rows);
        Frame frame(rows, context);
        frame.require(looked_at_);
        std::array<Truth, kChunk> truths;
        for_each_chunk(frame, [&](std::size_t from, Rows numbers) {
            root_->test(frame, numbers, truths.data());
            for (std::size_t k = 0; k < numbers.size(); ++k) keep[from + k] = truths[k] == Truth::True ? 1 : 0;
        });
    }

private:
    NodePtr root_;
    std::vector<Slot> looked_at_;
};

}  // namespace

std::unique_ptr<Expression> Expression::compile(const Spec& spec) { return std::make_unique<CompiledExpression>(spec); }

}  // namespace penstock
