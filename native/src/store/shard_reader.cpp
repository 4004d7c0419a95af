#include "store/shard_reader.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <thread>
#include <utility>

#include "errors.hpp"
#include "store/files.hpp"
#include "store/lookup.hpp"

namespace penstock {

using layout::Entry;
using layout::Header;
using layout::LabelChunk;
using layout::LabelRow;
using layout::Offset;
using layout::VtsArray;

namespace {

/// The data read is inconsistent: memory was recycled during the read, or a commit is half published.
struct ReadAgain {};

constexpr int kSpins = 64;          // attempts before it starts to sleep between them
constexpr int kMaxSteps = 1 << 16;  // memory accesses per attempt: recycled memory may form cycles
constexpr auto kPause = std::chrono::microseconds(50);

/// Applies the removal words of a whole list.
void drop_removed(std::vector<TermId>& values) {
    std::vector<std::uint8_t> shown(values.size(), 1);
    for (std::size_t i = 0; i < values.size(); ++i) {
        if (!layout::Removal::is(values[i])) continue;
        shown[i] = 0;
        const std::uint32_t position = layout::Removal::position(values[i]);
        if (position >= i) throw ReadAgain{};
        shown[position] = layout::Removal::restores(values[i]) ? 1 : 0;
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < values.size(); ++i)
        if (shown[i] != 0) values[count++] = values[i];
    values.resize(count);
}

}  // namespace

/// Validates every offset.
class ShardReader::Memory {
public:
    Memory(const char* base, std::uint64_t mapped) : base_(base), mapped_(mapped) {}

    template <class T>
    const T& at(Offset offset, std::uint64_t bytes = sizeof(T)) const {
        if (++steps_ > kMaxSteps || offset % 8 != 0 || offset > mapped_ || bytes > mapped_ - offset) throw ReadAgain{};
        return *reinterpret_cast<const T*>(base_ + offset);
    }

    const layout::ListExtent* extent(Offset offset, std::uint32_t) const {
        const std::uint32_t capacity = at<layout::ListExtent>(offset).capacity;
        return &at<layout::ListExtent>(offset, layout::ListExtent::bytes(capacity));
    }

    std::uint64_t size() const { return mapped_; }

private:
    const char* base_;
    std::uint64_t mapped_;
    mutable int steps_ = 0;
};

ShardReader::ShardReader(const std::string& path, std::chrono::milliseconds patience)
    : path_(path), patience_(patience) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) files::fail("open region", path);
    // The header states how much address space the region may grow into.
    char bytes[sizeof(Header)];
    const bool whole = ::pread(fd, bytes, sizeof bytes, 0) == static_cast<ssize_t>(sizeof bytes);
    Header header{};
    std::memcpy(&header, bytes, sizeof header);
    if (!whole || header.magic != layout::kMagic || header.version != layout::kVersion) {
        ::close(fd);
        throw StorageError("not a region of this version: " + path);
    }
    reserve_bytes_ = header.reserve_bytes;
    void* address = ::mmap(nullptr, reserve_bytes_, PROT_READ, MAP_SHARED | MAP_NORESERVE, fd, 0);
    ::close(fd);
    if (address == MAP_FAILED) files::fail("map region", path);
    base_ = static_cast<const char*>(address);
}

ShardReader::~ShardReader() { ::munmap(const_cast<char*>(base_), reserve_bytes_); }

/// Repeats read(memory) until no memory that it may have accessed was recycled meanwhile.
template <class Read>
auto ShardReader::attempt(Read read) const {
    const auto deadline = std::chrono::steady_clock::now() + patience_;
    for (int spin = 0;; ++spin) {
        // Acquire: a reader that starts with this count finds no reference to memory recycled before (Region::recycle).
        const std::uint64_t reclaims = layout::load_acquire(header().reclaims);
        try {
            auto result = read(Memory(base_, layout::load_acquire(header().mapped)));
            // As in a sequence lock: if a load above met memory in its new use, this fence makes the later load see the
            // count that was stored before that use.
            std::atomic_thread_fence(std::memory_order_acquire);
            if (layout::load_acquire(header().reclaims) == reclaims) return result;
        } catch (const ReadAgain&) {
            if (std::chrono::steady_clock::now() > deadline)
                throw StorageError("a commit stays half published, or the region is damaged: " + path_);
        }
        if (spin > kSpins) std::this_thread::sleep_for(kPause);
    }
}

std::vector<TermId> ShardReader::copy_list(const Memory& memory, Offset offset) const {
    const auto& entry = memory.at<Entry>(offset);
    const std::uint64_t state = layout::load_acquire(entry.state);  // state before head: see layout::Entry
    const TermId head = layout::load_acquire(entry.head);
    // Readers of this class have no append logs, so they cannot separate a half-published commit from earlier ones.
    if (layout::last_of(state) > layout::load_acquire(header().published)) throw ReadAgain{};
    if (layout::is_rewritten(head) && lookup::rewritten(memory, head).follows(state)) throw ReadAgain{};
    const std::uint32_t length = layout::length_of(state);
    if (length > memory.size() / sizeof(TermId) || (length > 1 && !layout::is_extent(head))) throw ReadAgain{};
    std::vector<TermId> values(length);
    std::size_t count = 0;
    lookup::for_each_piece(memory, head, 0, length, [&](const TermId* piece, std::size_t n) {
        if (n > length - count) throw ReadAgain{};  // memory in a new use: the capacity of an extent has changed
        std::copy_n(piece, n, values.data() + count);
        count += n;
    });
    if (layout::has_removals(state)) drop_removed(values);
    // The head may belong to a list that was rewritten twice, or has grown, since its state was loaded. The fence is as
    // in attempt(): the state is loaded after what was read by that head.
    std::atomic_thread_fence(std::memory_order_acquire);
    if (layout::load_acquire(entry.state) != state) throw ReadAgain{};
    return values;
}

Snapshot ShardReader::latest() const { return static_cast<Snapshot>(layout::load_acquire(header().published)); }

std::vector<TermId> ShardReader::neighbours(TermId vertex, Label label, Dir dir) const {
    if (vertex == kUnbound) return {};
    return attempt([&](const Memory& memory) -> std::vector<TermId> {
        const Offset bucket = lookup::current_bucket(memory, layout::record_hash(header().seed, vertex, dir));
        const Offset record = lookup::find_record(memory, bucket, vertex, dir);
        const Offset entry = record == 0 ? 0 : lookup::find_entry(memory, record, vertex, label, dir);
        if (entry == 0) return {};
        return copy_list(memory, entry);
    });
}

std::vector<TermId> ShardReader::vertices(Label label, Dir dir) const {
    if (label > layout::kMaxLabel) return {};
    return attempt([&](const Memory& memory) -> std::vector<TermId> {
        const Offset chunk = layout::load_acquire(header().label_chunks[LabelChunk::number(label)]);
        if (chunk == 0) return {};
        const Offset row = LabelChunk::row_at(chunk, label);
        return copy_list(memory, row + offsetof(LabelRow, vertices) + static_cast<std::size_t>(dir) * sizeof(Entry));
    });
}

std::int64_t ShardReader::vts(std::uint32_t stream) const {
    return attempt([&](const Memory& memory) {
        const Offset offset = layout::load_acquire(header().vts);
        if (offset == 0) return kNever;
        const std::uint64_t capacity = memory.at<VtsArray>(offset).capacity;
        if (stream >= capacity) return kNever;
        const auto& array = memory.at<VtsArray>(offset, VtsArray::bytes(stream + 1));
        return static_cast<std::int64_t>(layout::load_acquire(array.batches()[stream]));
    });
}

std::uint64_t ShardReader::epoch() const { return header().epoch; }

bool ShardReader::retired() const {
    return layout::load_acquire(header().status) == static_cast<std::uint64_t>(layout::RegionStatus::Retired);
}

}  // namespace penstock
