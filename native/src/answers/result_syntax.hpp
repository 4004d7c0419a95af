// The rows of an answer, written in any syntax.
//
// A syntax is a class with these functions: begin() and end() write the text before and after the rows. begin_row() and
// end_row() write the text before and after a row. separate() writes the text before a bound cell, cell() writes a
// term, and unbound() writes an unbound cell. The text of a cell depends only on its column and term.
#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "answers/result_writer.hpp"
#include "rdf/inline_literal.hpp"
#include "rdf/utf8.hpp"

namespace penstock {

/// Replaces bytes that are not UTF-8 by U+FFFD. The dictionary contains UTF-8 only, but ids of short strings can be
/// forged.
inline void make_utf8(std::string& text) {
    std::string made;
    const char* const end = text.data() + text.size();
    for (const char* at = text.data(); at != end;) {
        char32_t code = next_code_point(at, end);
        if (code == kInvalidCodePoint) {
            code = 0xFFFD;
            ++at;
        }
        append_utf8(made, code);
    }
    text = std::move(made);
}

template <class Syntax>
class SyntaxWriter final : public ResultWriter {
public:
    SyntaxWriter(const SolutionRows& rows, const TermTexts& terms)
        : rows_(rows), terms_(terms), syntax_(rows_.variables), last_(rows_.columns.size()) {
        if (rows_.rows == 0) return;
        cursors_.reserve(rows_.columns.size());
        for (const SolutionColumn& column : rows_.columns) cursors_.emplace_back(column);
    }

    bool write(TextBuffer& out, std::size_t bytes) override {
        if (!begun_) syntax_.begin(out, rows_.variables);
        begun_ = true;
        write_rows(out, bytes);
        if (next_ < rows_.rows) return true;
        syntax_.end(out);
        return false;
    }
    /// Appends rows until `out` has `bytes` bytes.
    void write_rows(TextBuffer& out, std::size_t bytes) {
        forget_cells();  // `out` may be another buffer
        for (; next_ < rows_.rows && out.size() < bytes; ++next_) write_row(out, next_ == 0);
    }
    /// Appends the rows [first, end), as if they were all rows of an answer. Between two calls, text can only be
    /// appended to `out`, unless forget_cells() is called.
    void write_range(TextBuffer& out, std::size_t first, std::size_t end) {
        if (first == end) return;
        for (ColumnCursor& cursor : cursors_) cursor.seek(first);
        for (std::size_t row = first; row < end; ++row) write_row(out, row == first);
    }
    void forget_cells() { std::fill(last_.begin(), last_.end(), Cell{}); }
    const Syntax& syntax() const { return syntax_; }
    Syntax& syntax() { return syntax_; }

private:
    /// A cell in the text that is being written.
    struct Cell {
        TermId id = kUnbound;
        std::size_t at = 0;
        std::size_t bytes = 0;
    };

    void write_row(TextBuffer& out, bool first) {
        syntax_.begin_row(out, first);
        for (std::size_t i = 0; i < cursors_.size(); ++i) write_cell(out, i);
        syntax_.end_row(out);
    }
    void write_cell(TextBuffer& out, std::size_t i) {
        const TermId id = cursors_[i].value();
        cursors_[i].next();
        if (id == kUnbound) return syntax_.unbound(out, i);
        syntax_.separate(out, i);
        Cell& last = last_[i];
        if (last.id == id) {  // joins repeat values
            const std::size_t at = out.size();
            out.repeat(last.at, last.bytes);
            last.at = at;
            return;
        }
        last = {id, out.size(), 0};
        syntax_.cell(out, i, text_of(id));
        last.bytes = out.size() - last.at;
    }
    TermView text_of(TermId id) {
        TermView term = terms_.view(id, scratch_);
        if (tag_of(id) != Tag::String) return term;
        if (std::all_of(scratch_.begin(), scratch_.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; }))
            return term;
        make_utf8(scratch_);
        term.lexical = scratch_;
        return term;
    }

    const SolutionRows& rows_;
    const TermTexts& terms_;
    Syntax syntax_;
    std::vector<ColumnCursor> cursors_;
    std::vector<Cell> last_;  // the last bound cell of each column
    std::string scratch_;
    std::size_t next_ = 0;
    bool begun_ = false;
};

}  // namespace penstock
