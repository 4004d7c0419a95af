#include "mapping/csv_reader.hpp"

#include <algorithm>
#include <string>

#include "simdjson.h"

namespace penstock::mapping {
namespace {

constexpr std::size_t kMaxCell = 131'072;  // Python's limit

[[noreturn]] void decline() { throw Declined{}; }

bool is_line_end(char c) { return c == '\n' || c == '\r'; }

}  // namespace

std::size_t CsvReader::read(std::string_view text) {
    if (text.starts_with("\xEF\xBB\xBF") || !simdjson::validate_utf8(text.data(), text.size())) decline();
    at_ = text.data();
    end_ = at_ + text.size();
    cells_.clear();
    unquoted_ = {};
    if (text.empty() || is_line_end(text[0]) || !next_row()) decline();
    set_header();
    std::size_t rows = 0;
    for (std::size_t known = 0; next_row(); known = cells_.size())
        if (cells_.size() - known != width_ || ++rows > program_.max_values) decline();
    return rows;
}

/// Appends the cells of the next row that is not empty.
bool CsvReader::next_row() {
    while (at_ != end_ && is_line_end(*at_)) ++at_;
    if (at_ == end_) return false;
    for (row_ends_ = false; !row_ends_;) next_cell();
    return true;
}

void CsvReader::next_cell() {
    if (at_ != end_ && *at_ == '"') {
        quoted_cell();
    } else {
        const char* const from = at_;
        while (at_ != end_ && *at_ != ',' && !is_line_end(*at_)) ++at_;
        cells_.emplace_back(from, static_cast<std::size_t>(at_ - from));
    }
    if (cells_.back().size() > kMaxCell) decline();
    row_ends_ = at_ == end_ || is_line_end(*at_);
    if (at_ == end_) return;
    if (row_ends_ && *at_ == '\r' && at_ + 1 != end_ && at_[1] == '\n') ++at_;
    ++at_;
}

void CsvReader::quoted_cell() {
    const char* from = ++at_;
    std::string joined;
    for (;;) {
        at_ = std::find(at_, end_, '"');
        if (at_ == end_) decline();
        if (at_ + 1 == end_ || at_[1] != '"') break;
        joined.append(from, ++at_);  // with one of the two quotes
        from = ++at_;
    }
    const std::string_view rest(from, static_cast<std::size_t>(at_ - from));
    cells_.push_back(joined.empty() ? rest : unquoted_.copy(joined.append(rest)));
    ++at_;
    if (at_ != end_ && *at_ != ',' && !is_line_end(*at_)) decline();
}

void CsvReader::set_header() {
    width_ = cells_.size();
    columns_.assign(program_.names.size(), Names::kNone);
    std::vector<std::string_view> sorted = cells_;
    std::sort(sorted.begin(), sorted.end());
    if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) decline();
    for (std::size_t i = 0; i < width_; ++i)
        if (const std::uint32_t name = program_.names.find(cells_[i]); name != Names::kNone)
            columns_[name] = static_cast<std::uint32_t>(i);
    cells_.clear();
}

std::optional<std::string_view> CsvReader::cell(std::size_t row, std::uint32_t column) const {
    const std::uint32_t place = columns_[column];
    if (place == Names::kNone) decline();
    const std::string_view text = cells_[row * width_ + place];
    if (std::find(program_.nulls.begin(), program_.nulls.end(), text) != program_.nulls.end()) return std::nullopt;
    return text;
}

std::size_t complete_rows(std::string_view text) {
    std::size_t complete = 0;
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] == '"') {  // at the beginning of a cell
            for (++at;; at += 2) {
                at = text.find('"', at);
                if (at >= text.size()) return complete;
                if (at + 1 >= text.size() || text[at + 1] != '"') break;
            }
            ++at;
        }
        at = text.find_first_of(",\r\n", at);
        if (at >= text.size()) return complete;
        const bool cr = text[at] == '\r';
        if (cr && at + 1 == text.size()) return complete;  // a line feed can follow
        if (cr && text[at + 1] == '\n') ++at;
        if (text[at++] != ',') complete = at;
    }
    return complete;
}

}  // namespace penstock::mapping
