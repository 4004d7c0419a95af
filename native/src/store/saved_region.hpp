// The saved form of a region, and the changes since (ADR 39). It is a chain of parts. Each part is a file of spans of
// the region's bytes; a later part overrides earlier ones, and all parts together cover all blocks that have used
// bytes. Changed blocks are found by comparing checksums. Writers therefore need not mark what they change, and no
// change can be missed (docs/adr/0039 gives the cost).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/free_blocks.hpp"

namespace penstock {

inline constexpr std::size_t kSavedBlock = 1024;
inline constexpr std::uint64_t kUnusedBlock = 0;  // instead of its checksum: the block is not saved

struct SavedPart {
    std::string name;  // of the file
    std::uint64_t bytes = 0;
    std::uint64_t checksum = 0;
};

struct SavedRegion {
    std::uint64_t bytes = 0;          // of the region
    std::vector<std::uint64_t> sums;  // of its blocks; the last block may be shorter
    std::vector<SavedPart> parts;

    std::uint64_t root() const;  // checksum of the whole
    /// The total size of the blocks that contain used bytes.
    std::uint64_t used_bytes() const;
    /// Whether one new part should replace the chain, because the chain has too many parts, or many more bytes than the
    /// new part would have.
    bool long_chain() const;
};

/// The checksums of the blocks of `content`; kUnusedBlock for blocks within unused spans. The unused spans are
/// ascending and not adjacent.
std::vector<std::uint64_t> block_sums(std::string_view content, const std::vector<Span>& unused);

/// The changes of a region since it was saved: spans, and after copy() a copy of their bytes, so that the region may
/// change again.
class Changes {
public:
    /// `unused` as in block_sums().
    Changes(const SavedRegion& since, std::string_view content, const std::vector<Span>& unused);

    std::uint64_t bytes() const { return bytes_; }
    /// Copies the bytes. Without this copy, the region must not change before write().
    void copy();
    /// Writes the part `directory`/`name` and returns the new saved form. StorageError.
    SavedRegion write(const SavedRegion& since, const std::string& directory, const std::string& name) const;

private:
    struct Run {
        std::uint64_t begin;
        std::string_view bytes;
    };
    std::vector<Run> runs_;
    std::vector<std::uint64_t> sums_;
    std::uint64_t size_ = 0;   // of the region
    std::uint64_t bytes_ = 0;  // of the runs
    std::vector<char> copy_;
};

/// Assembles the chain in `memory`, which has the region's size, and stores its block checksums in `saved`. The content
/// of unused blocks is undefined. The StorageError names the damaged file, or states that the parts together do not
/// give the saved content.
void read_parts(SavedRegion& saved, std::uint64_t root, const std::string& directory, char* memory,
                const std::vector<Span>& unused);

/// Merges the chain into one new part `name` and verifies the checksums on the way. StorageError.
SavedPart merge_parts(const SavedRegion& saved, const std::string& directory, const std::string& name);

}  // namespace penstock
