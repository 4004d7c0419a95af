// Terms in columns with the layout of Arrow's arrays: the parts of a dictionary in Spark's tasks and Parquet files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "rdf/dictionary.hpp"

namespace penstock {

/// Concatenated texts; text i is bytes[offsets[i], offsets[i + 1]).
struct TextColumn {
    std::vector<std::int32_t> offsets{0};
    std::vector<char> bytes;

    void push(std::string_view text) {
        bytes.insert(bytes.end(), text.begin(), text.end());
        offsets.push_back(static_cast<std::int32_t>(bytes.size()));
    }
};

/// A part of a dictionary, in ascending order of the ids' payloads.
struct TermColumns {
    std::vector<TermId> ids;
    std::vector<std::uint8_t> kinds;
    TextColumn lexicals, datatypes, langs;
    std::uint64_t next = 0;  // slot at which the next part starts

    std::size_t bytes() const { return lexicals.bytes.size() + datatypes.bytes.size() + langs.bytes.size(); }
};

/// A checked view of texts that the caller owns: DataError unless the offsets ascend within the bytes.
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

/// IRIs and literals from columns of equal length. DataError for other kinds and unequal lengths.
std::vector<TermView> term_views(std::span<const std::uint8_t> kinds, const TextColumnView& lexicals,
                                 const TextColumnView& datatypes, const TextColumnView& langs);

}  // namespace penstock
