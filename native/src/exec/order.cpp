// ORDER BY: stable, the member first. Under a LIMIT it retains only rows that can still be in the answer.
#include <algorithm>
#include <numeric>

#include "exec/collected.hpp"
#include "exec/compiler.hpp"
#include "exec/order.hpp"

namespace penstock::exec {

Order::Order(const Spec& spec, Compiler& compiler) : Unary(compiler.child(spec, "in")) {
    schema_ = in_->schema();
    int member = compiler.slot_at(spec, "member");
    if (member >= 0) {
        member_ = schema_.index_of(static_cast<Slot>(member));
        if (member_ < 0) throw Error("plan: 'order' over rows without their member");
    }
    for (const Spec& key : spec.at("keys").as_list()) {
        const Spec* descending = key.find("desc");
        keys_.push_back({compiler.expression(key.at("expr"), schema_), descending != nullptr && descending->as_bool()});
    }
    // Sort keys are stored as further columns after the input's.
    held_ = schema_;
    for (std::size_t k = 0; k < keys_.size(); ++k) held_.add(0, true);
    held_.shape(extended_);
    schema_.shape(buffer_);
}

void Order::begin() { rows_.begin(*run_, held_); }

bool Order::consume(Table& rows) {
    run_->work(rows.rows);
    std::size_t carried = rows.columns.size();
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        Column& key = extended_.columns[carried + k];
        keys_[k].value->evaluate(rows, run_->expressions, key);
        const std::size_t fetched = run_->expressions.terms.dictionary().require(key.data(), rows.rows);
        run_->budget().charge(static_cast<std::ptrdiff_t>(fetched));
    }
    for (std::size_t c = 0; c < carried; ++c) std::swap(extended_.columns[c], rows.columns[c]);
    extended_.rows = rows.rows;
    rows_.push(extended_);
    if (limit_ != kNoLimit && rows_.table().rows >= 4 * limit_ + 4 * kMorsel) prune();
    return true;
}

bool Order::before(std::uint32_t a, std::uint32_t b) const {
    const Table& table = rows_.table();
    if (member_ >= 0) {
        const Column& member = table.columns[static_cast<std::size_t>(member_)];
        if (member[a] != member[b]) return member[a] < member[b];
    }
    // By value first: 15 and 15.0 are equal, so the next key decides. Only rows that are equal in all keys are ordered
    // by the spelling of their keys.
    int order = keys_order(a, b, value_compare);
    if (order == 0) order = keys_order(a, b, order_compare);
    return order != 0 ? order < 0 : a < b;  // stable
}

int Order::keys_order(std::uint32_t a, std::uint32_t b, Compare compare) const {
    const Table& table = rows_.table();
    const std::size_t carried = schema_.slots.size();
    for (std::size_t k = 0; k < keys_.size(); ++k) {
        const TermId x = table.columns[carried + k][a], y = table.columns[carried + k][b];
        if (x == y) continue;
        const int order = compare(x, y, run_->expressions.terms);
        if (order != 0) return keys_[k].descending ? -order : order;
    }
    return 0;
}

/// Sets order_ to the rows in order, at most `limit` of them.
void Order::sort(std::size_t limit) {
    const Table& table = rows_.table();
    order_charge_.set(run_->budget(), table.rows * 2 * sizeof(std::uint32_t));
    order_.resize(table.rows);
    std::iota(order_.begin(), order_.end(), 0u);
    std::size_t steps = 0;
    auto less = [&](std::uint32_t a, std::uint32_t b) {
        if ((++steps & 0xFFF) == 0) run_->budget().check();
        return before(a, b);
    };
    if (limit < table.rows) {
        std::partial_sort(order_.begin(), order_.begin() + static_cast<std::ptrdiff_t>(limit), order_.end(), less);
        order_.resize(limit);
    } else {
        std::stable_sort(order_.begin(), order_.end(), less);
    }
}

/// Retains the first `limit_` of the collected rows, in their order of arrival, which breaks ties.
void Order::prune() {
    sort(limit_);
    std::sort(order_.begin(), order_.end());
    Table& table = rows_.table();
    for (Column& column : table.columns) {
        for (std::size_t i = 0; i < order_.size(); ++i) column[i] = column[order_[i]];
        column.resize(order_.size());
    }
    table.rows = order_.size();
}

void Order::finish() {
    sort(limit_);
    Table& table = rows_.table();
    std::vector<Column> keys;
    for (std::size_t k = 0; k < keys_.size(); ++k) {  // without the key columns
        keys.push_back(std::move(table.columns.back()));
        table.columns.pop_back();
        table.slots.pop_back();
    }
    push_rows(table, order_, buffer_, *run_, *out_);
    rows_.release(run_->budget());
    order_charge_.release(run_->budget());
    if (order_.capacity() > 4 * kMorsel) order_ = {};
}

OperatorPtr make_order(const Spec& spec, Compiler& compiler) { return std::make_unique<Order>(spec, compiler); }

}  // namespace penstock::exec
