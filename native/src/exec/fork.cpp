// Steps over the stored graph that run on the nodes that own their keys if there are many rows, and locally if there
// are few. Rows are collected first, because the cost of a fork is paid once for all of them.
#include <algorithm>
#include <string>
#include <utility>

#include "exec/collected.hpp"
#include "exec/correlated.hpp"
#include "exec/forking.hpp"
#include "exec/kernels.hpp"
#include "exec/rows.hpp"

namespace penstock::exec {

namespace {

class Fork final : public Correlated {
public:
    Fork(const Spec& spec, Compiler& compiler)
        : Correlated(spec, compiler),
          from_inner_(*this),
          number_(static_cast<std::uint32_t>(spec.at("id").as_int())),
          least_(spec.at("least").as_int()) {
        schema_ = inner_->schema();
        key_ = column_of(compiler.slot(spec.at("key")));
        part_slots_ = {schema_.slots[row_column_]};
        for (const Slot slot : compiler.slot_list(spec.at("uses"))) {
            part_slots_.push_back(slot);
            used_.push_back(column_of(slot));
        }
        for (const Slot slot : schema_.slots) from_outer_.push_back(outer_.schema.index_of(slot));
    }

private:
    static constexpr std::size_t kMostRows = std::size_t{1} << 17;  // the maximum collected
    // This multiple of `least` is collected first; a fork then clearly pays off.
    static constexpr std::size_t kFirst = 4;
    // The amount collected grows by this factor from flush to flush, because LIMIT may need few rows.
    static constexpr std::size_t kGrowth = 16;

    struct FromInner final : Sink {
        explicit FromInner(Fork& self) : self(self) {}
        bool consume(Table& rows) override { return self.more_ = self.out_->push(rows); }
        Fork& self;
    };

    std::size_t column_of(Slot slot) const {
        const int column = in_->schema().index_of(slot);
        if (column < 0) throw Error("plan: a fork needs slot " + std::to_string(slot) + ", which its input lacks");
        return static_cast<std::size_t>(column);
    }

    void begin() override {
        Correlated::begin();
        more_ = true;
        waiting_.begin(*run_, in_->schema());
        enough_ = std::min(std::max(kFirst * least_, kMorsel), kMostRows);
    }

    bool consume(Table& rows) override {
        run_->work(rows.rows);
        if (run_->forker == nullptr) return in_place(rows);
        waiting_.push(rows);
        if (waiting_.table().rows >= enough_) {
            flush();
            enough_ = std::min(enough_ * kGrowth, kMostRows);
        }
        return more_;
    }

    void finish() override {
        if (more_ && waiting_.table().rows > 0) flush();
        waiting_.release(run_->budget());
    }

    bool in_place(const Table& rows) {
        run_inner(rows, from_inner_);
        return more_;
    }

    void flush() {
        const Table& rows = waiting_.table();
        if (rows.rows < least_) {
            in_place(rows);
        } else {
            fork(rows);
        }
        waiting_.begin(*run_, in_->schema());
    }

    void fork(const Table& rows) {
        charge_.set(run_->budget(), rows.rows * part_slots_.size() * sizeof(TermId));
        divide(rows);
        std::vector<Table> found = run_->forker->run(number_, std::move(parts_), run_->budget());
        merge(rows, found);
        more_ = push_all(joined_, buffer_, *run_, *out_);
        outer_.first_row += rows.rows;
        joined_ = Table();
        charge_.release(run_->budget());
    }

    /// Splits the rows by the node that owns their key: for each row its number and the columns that the steps use.
    void divide(const Table& rows) {
        parts_.assign(run_->forker->nodes(), Table());
        for (Table& part : parts_) {
            part.slots = part_slots_;
            part.columns.resize(part_slots_.size());
        }
        node_of_row_.resize(rows.rows);
        for (std::size_t row = 0; row < rows.rows; ++row) {
            node_of_row_[row] = static_cast<std::uint32_t>(run_->forker->node_of(rows.columns[key_][row]));
            Table& part = parts_[node_of_row_[row]];
            part.columns[0].push_back(row);
            for (std::size_t c = 0; c < used_.size(); ++c) part.columns[1 + c].push_back(rows.columns[used_[c]][row]);
            ++part.rows;
        }
    }

    /// Steps over several graphs, or with a free predicate, return their rows graph by graph; this sorts them.
    void put_in_order(Table& part) const {
        const int numbers = part.index_of(part_slots_[0]);
        const Column& column = part.columns[static_cast<std::size_t>(numbers)];
        if (!std::is_sorted(column.begin(), column.end())) sort_by(part, static_cast<std::size_t>(numbers));
    }

    void check(const Table& part) const {
        for (std::size_t c = 0; part.rows > 0 && c < schema_.slots.size(); ++c) {
            if (c != row_column_ && from_outer_[c] >= 0) continue;
            const Column* column = part.find(schema_.slots[c]);
            if (column == nullptr || column->size() != part.rows) throw Error("a column of a fork did not come back");
        }
    }

    /// Fills joined_ with the nodes' rows, in the order of the rows that they extend.
    void merge(const Table& rows, std::vector<Table>& found) {
        schema_.shape(joined_);
        std::size_t total = 0;
        if (found.size() != run_->forker->nodes()) throw Error("a fork came back from another number of nodes");
        for (Table& part : found) {
            check(part);
            if (part.rows > 0) put_in_order(part);
            total += part.rows;
        }
        charge_.set(run_->budget(), 2 * total * joined_.columns.size() * sizeof(TermId));
        for (Column& column : joined_.columns) column.reserve(total);
        heads_.assign(found.size(), 0);
        for (std::size_t row = 0; row < rows.rows; ++row) {
            const Table& part = found[node_of_row_[row]];
            std::size_t& head = heads_[node_of_row_[row]];
            if (part.rows == head) continue;
            const std::size_t from = head;
            const Column& numbers = *part.find(part_slots_[0]);
            while (head < part.rows && numbers[head] == row) ++head;
            if (head > from) extend(rows, row, part, from, head);
        }
        joined_.rows = joined_.columns[row_column_].size();
        if (joined_.rows != total) throw Error("a fork came back with rows that it was not given");
    }

    void extend(const Table& rows, std::size_t row, const Table& part, std::size_t from, std::size_t to) {
        for (std::size_t c = 0; c < joined_.columns.size(); ++c) {
            Column& column = joined_.columns[c];
            if (c == row_column_) {
                append_same(column, outer_.first_row + row, to - from);
            } else if (from_outer_[c] >= 0) {
                append_same(column, rows.columns[static_cast<std::size_t>(from_outer_[c])][row], to - from);
            } else {
                append(column, part.find(schema_.slots[c])->data() + from, to - from);
            }
        }
    }

    FromInner from_inner_;
    std::uint32_t number_;
    std::size_t least_, key_;
    std::vector<std::size_t> used_;  // columns of the input
    std::vector<Slot> part_slots_;   // the row's number, and the slots of used_
    std::vector<int> from_outer_;    // by column of the output; -1: the steps bind it
    bool more_ = true;
    std::size_t enough_ = kMorsel;
    Collected waiting_;
    std::vector<Table> parts_;
    std::vector<std::uint32_t> node_of_row_;
    std::vector<std::size_t> heads_;
    Table joined_, buffer_;
    Charge charge_;
};

}  // namespace

OperatorPtr make_fork(const Spec& spec, Compiler& compiler) { return std::make_unique<Fork>(spec, compiler); }

}  // namespace penstock::exec
