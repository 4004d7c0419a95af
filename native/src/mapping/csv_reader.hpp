// Reads CSV texts (RFC 4180) whose first line names the columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "mapping/program.hpp"
#include "mapping/text_arena.hpp"

namespace penstock::mapping {

class CsvReader {
public:
    explicit CsvReader(const Program& program) : program_(program) {}

    /// Reads a text and returns the number of rows. The rows are valid until the next call. Throws Declined if the text
    /// is not CSV, or if it is one of the rare texts that Python's CSV reader reads differently.
    std::size_t read(std::string_view text);

    /// The text of a cell. Empty (nullopt) if the text means "no value". Throws Declined if there is no such column.
    std::optional<std::string_view> cell(std::size_t row, std::uint32_t column) const;

private:
    bool next_row();
    void next_cell();
    void quoted_cell();
    void set_header();

    const Program& program_;
    const char* at_ = nullptr;
    const char* end_ = nullptr;
    bool row_ends_ = false;
    TextArena unquoted_;
    std::vector<std::string_view> cells_;  // of all rows, without the header
    std::vector<std::uint32_t> columns_;   // by number of the name: the column
    std::size_t width_ = 0;
};

/// The length of the complete rows at the beginning of a text. A row is complete if its line end is in the text.
std::size_t complete_rows(std::string_view text);

}  // namespace penstock::mapping
