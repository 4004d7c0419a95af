// The saved form of a region, and the changes since (ADR 39). It is a chain of parts. Each part is a file of spans of
// the region's bytes; a later part overrides earlier ones, and the first part covers all bytes. Changed blocks are
// found by comparing checksums. Writers therefore need not mark what they change, and no change can be missed
// (docs/adr/0039 gives the cost).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

inline constexpr std::size_t kSavedBlock = 1024;

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
    /// Whether a new first part is cheaper to read than the chain: too many parts, or more bytes than one new part.
    bool long_chain() const;
};

/// The checksums of the blocks of `content`.
std::vector<std::uint64_t> block_sums(std::string_view content);

/// The changes of a region since it was saved: spans, and after copy() a copy of their bytes, so that the region may
/// change again.
class Changes {
public:
    Changes(const SavedRegion& since, std::string_view content);

    std::uint64_t bytes() const { return bytes_; }
    /// Copies the bytes. Without it the region must not change before write().
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

/// Assembles the chain in `memory`, which has the region's size, and stores its block checksums in `saved`.
/// StorageError names the damaged file, or states that the parts do not make what was saved.
void read_parts(SavedRegion& saved, std::uint64_t root, const std::string& directory, char* memory);

/// Merges the chain into one new part `name` and verifies the checksums on the way. StorageError.
SavedPart merge_parts(const SavedRegion& saved, const std::string& directory, const std::string& name);

}  // namespace penstock
