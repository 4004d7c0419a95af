// What the disk holds of a region, and what has changed since (ADR 39): a chain of parts, each a file of spans of
// the region's bytes, of which later ones lie over earlier ones. The first part has all of them. Which blocks have
// changed is found by their checksums: writers mark nothing, so no store can be forgotten (docs/adr/0039 has what that
// costs).
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
    std::vector<std::uint64_t> sums;  // of its blocks; the last one may be shorter
    std::vector<SavedPart> parts;

    std::uint64_t root() const;  // checksum of the whole
    /// Whether the chain takes more to read than it is worth: too many parts, or more bytes than a new first one.
    bool long_chain() const;
};

/// The checksums of the blocks of these bytes.
std::vector<std::uint64_t> block_sums(std::string_view content);

/// What of a region has changed since it was saved: spans with a copy of their bytes, so that it may go on changing.
class Changes {
public:
    Changes(const SavedRegion& since, std::string_view content);

    std::uint64_t bytes() const { return bytes_; }
    /// The bytes stay where they are until copy(): fine for who writes at once.
    void copy();
    /// Writes the part `directory`/`name` and returns what is on the disk then. StorageError.
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

/// Puts the chain together in `memory`, which has the region's size, and its sums into `saved`. StorageError naming the
/// file that is damaged, or saying that they do not make what was saved.
void read_parts(SavedRegion& saved, std::uint64_t root, const std::string& directory, char* memory);

/// Writes the whole chain anew as one part of that name, and checks it on the way. StorageError.
SavedPart merge_parts(const SavedRegion& saved, const std::string& directory, const std::string& name);

}  // namespace penstock
