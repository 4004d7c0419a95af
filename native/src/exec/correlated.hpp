// Operators whose inner side starts from the rows of the outer one: optional, lateral, semijoin, fork. The outer rows
// are numbered. The inner side's rows carry these numbers, which identify the outer row of each match.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/compiler.hpp"

namespace penstock::exec {

class Correlated : public Unary {
protected:
    Correlated(const Spec& spec, Compiler& compiler) : Unary(compiler.child(spec, "in")) {
        outer_.schema = in_->schema();
        Slot row = compiler.slot(spec.at("row"));
        if (outer_.schema.index_of(row) >= 0) throw Error("plan: the row-number slot is in use already");
        outer_.schema.add(row, false);
        inner_ = compiler.inner(spec.at("inner"), outer_);
        row_column_ = static_cast<std::size_t>(inner_->schema().index_of(row));
        if (inner_->schema().index_of(row) < 0) throw Error("plan: a correlated inner side loses its row number");
    }

    void begin() override { outer_.first_row = 1; }

    /// Runs the inner side over `rows`. Row numbers continue from morsel to morsel.
    void run_inner(const Table& rows, Sink& out) {
        outer_.rows = &rows;
        inner_->run(*run_, out);
        outer_.first_row += rows.rows;
    }
    /// The outer row of each of the inner side's rows.
    void outer_rows(const Table& inner, std::vector<std::uint32_t>& out) const {
        out.resize(inner.rows);
        for (std::size_t i = 0; i < inner.rows; ++i)
            out[i] = static_cast<std::uint32_t>(inner.columns[row_column_][i] - outer_.first_row);
    }

    OuterRows outer_;
    OperatorPtr inner_;
    std::size_t row_column_;
};

}  // namespace penstock::exec
