#include "store/saved_region.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <span>

#include "errors.hpp"
#include "rdf/hash.hpp"
#include "store/files.hpp"

namespace penstock {

namespace {

constexpr std::size_t kMaxParts = 16;
constexpr std::size_t kPiece = std::size_t{1} << 20;  // the unit of verification of a part; whole blocks
static_assert(kPiece % kSavedBlock == 0);

// Precedes the bytes of a run in a part.
struct RunHead {
    std::uint64_t begin;
    std::uint64_t bytes;
};

std::string_view as_bytes(const RunHead& head) { return {reinterpret_cast<const char*>(&head), sizeof head}; }

std::uint64_t add_to(std::uint64_t checksum, std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(std::min(bytes.size(), kPiece)))
        checksum = hash_bytes(bytes.data(), std::min(bytes.size(), kPiece), checksum);
    return checksum;
}

// Writes a part and computes its checksum incrementally.
class PartWriter {
public:
    explicit PartWriter(const std::string& path) : file_(path) {}
    void put(std::string_view bytes) {
        file_.file().write(bytes);
        checksum_ = add_to(checksum_, bytes);
        bytes_ += bytes.size();
    }
    SavedPart finish(const std::string& name) {
        file_.publish();
        return {name, bytes_, checksum_};
    }

private:
    files::NewFile file_;
    std::uint64_t checksum_ = 0;
    std::uint64_t bytes_ = 0;
};

[[noreturn]] void damaged(const std::string& path, const char* how) {
    throw StorageError("the saved region " + path + " is damaged: " + how);
}

// Reads a part run by run, in pieces, and verifies its checksum.
class PartReader {
public:
    PartReader(const SavedPart& part, const std::string& directory)
        : part_(part), path_(directory + "/" + part.name), file_(path_, O_RDONLY) {
        if (file_.size() != part.bytes) damaged(path_, "it is cut short or longer than it was");
    }

    // `place(offset, bytes)` returns memory for a piece of the region at an offset; `taken(offset, piece)` receives it.
    template <class Place, class Taken>
    void read(std::uint64_t region_bytes, Place place, Taken taken) {
        std::uint64_t left = part_.bytes, checksum = 0;
        while (left > 0) {
            RunHead head{};
            if (left < sizeof head) damaged(path_, "it ends within a run");
            file_.read({reinterpret_cast<char*>(&head), sizeof head});
            left -= sizeof head;
            checksum = add_to(checksum, as_bytes(head));
            if (head.bytes > left || head.begin > region_bytes || head.bytes > region_bytes - head.begin)
                damaged(path_, "a run is out of bounds");
            left -= head.bytes;
            for (std::uint64_t done = 0; done < head.bytes;) {
                const std::span<char> piece =
                    place(head.begin + done, std::min(head.bytes - done, std::uint64_t{kPiece}));
                file_.read(piece);
                checksum = hash_bytes(piece.data(), piece.size(), checksum);
                taken(head.begin + done, std::string_view(piece.data(), piece.size()));
                done += piece.size();
            }
        }
        if (checksum != part_.checksum) damaged(path_, "its checksum differs");
    }

private:
    const SavedPart& part_;
    std::string path_;
    files::File file_;
};

}  // namespace

std::uint64_t SavedRegion::root() const {
    return hash_bytes(reinterpret_cast<const char*>(sums.data()), sums.size() * sizeof sums[0], bytes);
}

std::uint64_t SavedRegion::used_bytes() const {
    const auto unused = std::count(sums.begin(), sums.end(), kUnusedBlock);
    return bytes - std::min(bytes, static_cast<std::uint64_t>(unused) * kSavedBlock);
}

bool SavedRegion::long_chain() const {
    std::uint64_t all = 0;
    for (const SavedPart& part : parts) all += part.bytes;
    return parts.size() > kMaxParts || (parts.size() > 1 && 5 * all > 7 * used_bytes());
}

namespace {

std::uint64_t block_sum(const char* data, std::size_t bytes, std::uint64_t at) {
    const std::uint64_t sum = hash_bytes(data, bytes, at);
    return sum == kUnusedBlock ? 1 : sum;
}

}  // namespace

std::vector<std::uint64_t> block_sums(std::string_view content, const std::vector<Span>& unused) {
    std::vector<std::uint64_t> sums;
    sums.reserve((content.size() + kSavedBlock - 1) / kSavedBlock);
    auto span = unused.begin();
    for (std::size_t at = 0; at < content.size(); at += kSavedBlock) {
        const std::size_t end = std::min(at + kSavedBlock, content.size());
        while (span != unused.end() && span->end < end) ++span;
        const bool is_unused = span != unused.end() && span->begin <= at;
        sums.push_back(is_unused ? kUnusedBlock : block_sum(content.data() + at, end - at, at));
    }
    return sums;
}

Changes::Changes(const SavedRegion& since, std::string_view content, const std::vector<Span>& unused)
    : sums_(block_sums(content, unused)), size_(content.size()) {
    for (std::size_t i = 0; i < sums_.size(); ++i) {
        if (sums_[i] == kUnusedBlock || (i < since.sums.size() && since.sums[i] == sums_[i])) continue;
        const std::uint64_t begin = i * kSavedBlock;
        const std::size_t bytes = std::min<std::size_t>(kSavedBlock, content.size() - begin);
        if (!runs_.empty() && runs_.back().begin + runs_.back().bytes.size() == begin)
            runs_.back().bytes = content.substr(runs_.back().begin, runs_.back().bytes.size() + bytes);
        else
            runs_.push_back({begin, content.substr(begin, bytes)});
        bytes_ += bytes;
    }
}

void Changes::copy() {
    copy_.reserve(bytes_);
    for (Run& run : runs_) {
        copy_.insert(copy_.end(), run.bytes.begin(), run.bytes.end());
        run.bytes = {copy_.data() + copy_.size() - run.bytes.size(), run.bytes.size()};
    }
}

SavedRegion Changes::write(const SavedRegion& since, const std::string& directory, const std::string& name) const {
    SavedRegion saved{size_, sums_, since.parts};
    if (runs_.empty() && !saved.parts.empty()) return saved;
    PartWriter part(directory + "/" + name);
    for (const Run& run : runs_) {
        part.put(as_bytes({run.begin, run.bytes.size()}));
        part.put(run.bytes);
    }
    saved.parts.push_back(part.finish(name));
    return saved;
}

void read_parts(SavedRegion& saved, std::uint64_t root, const std::string& directory, char* memory,
                const std::vector<Span>& unused) {
    for (const SavedPart& part : saved.parts)
        PartReader(part, directory)
            .read(
                saved.bytes, [&](std::uint64_t at, std::uint64_t n) { return std::span<char>(memory + at, n); },
                [](std::uint64_t, std::string_view) {});
    saved.sums = block_sums({memory, saved.bytes}, unused);
    if (saved.root() != root)
        throw StorageError("the saved region's files in " + directory + " do not make what was saved");
}

namespace {

/// The runs of a part that has all used blocks, and where it has them.
class WholePart {
public:
    struct Run {
        RunHead head;
        std::uint64_t at;  // of its first byte in the file, behind the head
    };

    explicit WholePart(const SavedRegion& saved) {
        for (std::size_t i = 0; i < saved.sums.size(); ++i) {
            if (saved.sums[i] == kUnusedBlock) continue;
            const std::uint64_t begin = i * kSavedBlock, bytes = std::min(kSavedBlock, saved.bytes - begin);
            if (runs_.empty() || runs_.back().head.begin + runs_.back().head.bytes != begin) {
                bytes_ += sizeof(RunHead);
                runs_.push_back({{begin, 0}, bytes_});
            }
            runs_.back().head.bytes += bytes;
            bytes_ += bytes;
        }
    }
    const std::vector<Run>& runs() const { return runs_; }
    std::uint64_t bytes() const { return bytes_; }  // of the file

    /// Writes those of the region's bytes from `begin` on that are in runs.
    void put(const files::File& file, std::uint64_t begin, std::string_view bytes) const {
        const std::uint64_t end = begin + bytes.size();
        auto run = std::upper_bound(runs_.begin(), runs_.end(), begin,
                                    [](std::uint64_t at, const Run& other) { return at < other.head.begin; });
        if (run != runs_.begin()) --run;
        for (; run != runs_.end() && run->head.begin < end; ++run) {
            const std::uint64_t from = std::max(begin, run->head.begin),
                                to = std::min(end, run->head.begin + run->head.bytes);
            if (from < to) file.write_at(run->at + (from - run->head.begin), bytes.substr(from - begin, to - from));
        }
    }

private:
    std::vector<Run> runs_;
    std::uint64_t bytes_ = 0;
};

/// Reads a part that was merged, verifies its blocks, and returns its checksum.
std::uint64_t verify_whole(const WholePart& part, const SavedRegion& saved, const std::string& path) {
    std::uint64_t checksum = 0;
    const files::File whole(path + ".tmp", O_RDONLY);
    std::vector<char> piece(kPiece);
    for (const WholePart::Run& run : part.runs()) {
        RunHead head{};
        whole.read({reinterpret_cast<char*>(&head), sizeof head});
        checksum = add_to(checksum, as_bytes(head));
        for (std::uint64_t done = 0; done < run.head.bytes; done += kPiece) {
            const std::uint64_t at = run.head.begin + done;
            const std::string_view read{piece.data(), std::min<std::size_t>(kPiece, run.head.bytes - done)};
            whole.read({piece.data(), read.size()});
            checksum = hash_bytes(read.data(), read.size(), checksum);
            for (std::size_t i = 0; i < read.size(); i += kSavedBlock)
                if (block_sum(read.data() + i, std::min(kSavedBlock, read.size() - i), at + i) !=
                    saved.sums[(at + i) / kSavedBlock])
                    damaged(path, "its parts do not make what was saved");
        }
    }
    return checksum;
}

}  // namespace

SavedPart merge_parts(const SavedRegion& saved, const std::string& directory, const std::string& name) {
    const std::string path = directory + "/" + name;
    files::NewFile made(path);
    const WholePart whole(saved);
    std::vector<char> piece(kPiece);
    const auto place = [&](std::uint64_t, std::uint64_t n) { return std::span<char>(piece.data(), n); };
    for (const SavedPart& part : saved.parts)
        PartReader(part, directory).read(saved.bytes, place, [&](std::uint64_t at, std::string_view bytes) {
            whole.put(made.file(), at, bytes);
        });
    for (const WholePart::Run& run : whole.runs()) made.file().write_at(run.at - sizeof(RunHead), as_bytes(run.head));
    if (made.file().size() != whole.bytes()) damaged(path, "its parts leave a gap");
    const std::uint64_t checksum = verify_whole(whole, saved, path);
    made.publish();
    return {name, whole.bytes(), checksum};
}

}  // namespace penstock
