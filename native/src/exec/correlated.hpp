// Operators whose inner side starts from the rows of the outer side: optional, lateral, semijoin, fork. The outer rows
// are numbered. Each row of the inner side contains such a number, which identifies the outer row of the match.
#pragma once

#include <cstdint>
#include <vector>

#include "exec/compiler.hpp"

namespace penstock::exec {

class Correlated : public Unary {
protected:
    Correlated(const Spec& spec, Compiler& compiler) : Correlated(spec, compiler, spec.at("inner")) {}

    /// `inner`: the spec of the inner side.
    Correlated(const Spec& spec, Compiler& compiler, const Spec& inner) : Unary(compiler.child(spec, "in")) {
        outer_.schema = in_->schema();
        row_ = compiler.slot(spec.at("row"));
        if (outer_.schema.index_of(row_) >= 0) throw Error("plan: the row-number slot is in use already");
        outer_.schema.add(row_, false);
        inner_ = compiler.inner(inner, outer_);
        row_column_ = row_column(*inner_);
    }

    void begin() override { outer_.first_row = 1; }

    /// Runs the inner side over `rows`. Row numbers continue from morsel to morsel.
    void run_inner(const Table& rows, Sink& out) {
        outer_.rows = &rows;
        inner_->run(*run_, out);
        outer_.first_row += rows.rows;
    }
    /// The outer row of each of the inner side's rows.
    void outer_rows(const Table& inner, std::vector<std::uint32_t>& out) const { outer_rows(inner, row_column_, out); }
    void outer_rows(const Table& inner, std::size_t row_column, std::vector<std::uint32_t>& out) const {
        out.resize(inner.rows);
        for (std::size_t i = 0; i < inner.rows; ++i)
            out[i] = static_cast<std::uint32_t>(inner.columns[row_column][i] - outer_.first_row);
    }

    /// The column with the row numbers of an inner side.
    std::size_t row_column(const Operator& inner) const {
        const int column = inner.schema().index_of(row_);
        if (column < 0) throw Error("plan: a correlated inner side loses its row number");
        return static_cast<std::size_t>(column);
    }

    OuterRows outer_;
    Slot row_;
    OperatorPtr inner_;
    std::size_t row_column_;
};

}  // namespace penstock::exec
