// Terms in columns, laid out as Arrow's arrays are: what Spark's tasks and Parquet files hold of a dictionary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rdf/dictionary.hpp"

namespace penstock {

/// Texts one after the other; text i is bytes[offsets[i], offsets[i + 1]).
struct TextColumn {
    std::vector<std::int32_t> offsets{0};
    std::vector<char> bytes;

    void push(std::string_view text) {
        bytes.insert(bytes.end(), text.begin(), text.end());
        offsets.push_back(static_cast<std::int32_t>(bytes.size()));
    }
};

/// A part of a dictionary, in ascending order of ids' payloads.
struct TermColumns {
    std::vector<TermId> ids;
    std::vector<std::uint8_t> kinds;
    TextColumn lexicals, datatypes, langs;
    std::uint64_t next = 0;  // slot to go on from

    std::size_t bytes() const { return lexicals.bytes.size() + datatypes.bytes.size() + langs.bytes.size(); }
};

/// Texts that somebody else holds, checked: DataError where the offsets do not ascend within the bytes.
class TextColumnView {
public:
    TextColumnView(std::span<const std::int32_t> offsets, std::span<const std::uint8_t> bytes);
    std::size_t size() const { return offsets_.size() - 1; }
    std::string_view operator[](std::size_t i) const {
        return {bytes_ + offsets_[i], static_cast<std::size_t>(offsets_[i + 1] - offsets_[i])};
    }

private:
    std::span<const std::int32_t> offsets_;
    const char* bytes_;
};

/// IRIs and literals of columns of equal length. DataError for other kinds and unequal lengths.
std::vector<TermView> term_views(std::span<const std::uint8_t> kinds, const TextColumnView& lexicals,
                                 const TextColumnView& datatypes, const TextColumnView& langs);

}  // namespace penstock
