// Slices seen from copied: the region file mapped a second time, read-only, while the stream writes and recycles.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "errors.hpp"
#include "stream/slice.hpp"
#include "stream/slice_ring.hpp"
#include "stream_fixture.hpp"

namespace penstock {
namespace {

using namespace penstock::testing;

/// What a reader in another process does: it knows the layout and nothing else.
class Reader {
public:
    explicit Reader(std::string path) : path_(std::move(path)) {}
    ~Reader() { unmap(); }

    /// Calls f(slice) with a whole copy of each slice that is there; returns the number of discarded copies.
    template <class F>
    int read(F&& f) {
        if (!map()) return 0;
        int torn = 0;
        std::vector<std::uint64_t> copy;
        std::uint64_t at = reinterpret_cast<const RegionHeader*>(base_)->header_bytes;
        while (at + sizeof(SegmentHeader) <= bytes_) {
            const auto& segment = *reinterpret_cast<const SegmentHeader*>(base_ + at);
            const std::uint64_t sequence = segment.sequence.load(std::memory_order_acquire);
            const std::uint64_t used = segment.used.load(std::memory_order_acquire);
            const std::uint64_t size = segment.bytes;
            if (size == 0 || at + size > bytes_) break;  // not laid out yet, or beyond what is mapped
            if (sequence != 0 && used <= size) {
                copy.resize(used / 8);
                std::memcpy(copy.data(), base_ + at, used);
                std::atomic_thread_fence(std::memory_order_acquire);
                if (segment.sequence.load(std::memory_order_relaxed) == sequence)
                    each_slice(copy, sequence, f);
                else
                    ++torn;
            }
            at += size;
        }
        return torn;
    }

private:
    template <class F>
    static void each_slice(const std::vector<std::uint64_t>& segment, std::uint64_t sequence, F&& f) {
        const auto* const begin = reinterpret_cast<const std::byte*>(segment.data());
        for (std::size_t at = sizeof(SegmentHeader); at < segment.size() * 8; at += slice_header(begin + at).bytes) {
            ASSERT_EQ(slice_header(begin + at).sequence, sequence);
            f(begin + at);
        }
    }

    bool map() {
        const int file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
        if (file < 0) return false;
        struct stat status;
        ::fstat(file, &status);
        if (status.st_size == 0) {  // made, but not laid out yet
            ::close(file);
            return false;
        }
        if (static_cast<std::size_t>(status.st_size) != bytes_) {
            unmap();
            bytes_ = static_cast<std::size_t>(status.st_size);
            base_ = static_cast<const std::byte*>(::mmap(nullptr, bytes_, PROT_READ, MAP_SHARED, file, 0));
        }
        ::close(file);
        return true;
    }
    void unmap() {
        if (base_ != nullptr) ::munmap(const_cast<std::byte*>(base_), bytes_);
    }

    std::string path_;
    const std::byte* base_ = nullptr;
    std::size_t bytes_ = 0;
};

std::string region(const Fixture& fixture) { return fixture.directory.path() + "/stream-1.region"; }

TEST(Region, slices_can_be_read_by_any_process_that_maps_it) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    append(stream, {{150, 1, 7, 1}, {50, 2, 8, 3}, {120, 3, 7, 1}});
    stream.close(1);
    Reader reader(region(fixture));
    std::vector<std::int64_t> times;
    reader.read([&](const std::byte* slice) {
        const Stream::SliceView view = slice_view(slice);
        times.insert(times.end(), view.ts.begin(), view.ts.end());
    });
    EXPECT_EQ(times, (std::vector<std::int64_t>{50, 120, 150}));
    stream.release(0);
    stream.release(1);
    reader.read([](const std::byte*) { FAIL() << "released slices are gone"; });
}

TEST(Region, its_file_goes_with_the_stream_and_a_left_one_is_replaced) {
    Fixture fixture;
    {
        std::ofstream(region(fixture)) << "left by a process that crashed";
    }
    {
        Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
        append(stream, {{50, 1, 7, 1}});
        stream.close(0);
        EXPECT_GT(std::filesystem::file_size(region(fixture)), 100'000u);
    }
    EXPECT_FALSE(std::filesystem::exists(region(fixture)));
}

TEST(Region, a_directory_that_is_not_there_is_a_storage_error_and_the_batch_stays_open) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    append(stream, {{50, 1, 7, 1}});
    const std::string moved = fixture.directory.path() + "-moved";
    std::filesystem::rename(fixture.directory.path(), moved);
    EXPECT_THROW(stream.close(0), StorageError);
    EXPECT_EQ(stream.first_open(), 0);
    EXPECT_EQ(stream.closed(), kNever);
    std::filesystem::rename(moved, fixture.directory.path());
    stream.close(0);
    EXPECT_EQ(stream.live_tuples(), 1u);
}

TEST(Region, is_a_ring_that_grows_and_shrinks_with_the_rate) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(100));
    std::size_t file = 0;
    for (std::int64_t batch = 0; batch < 600; ++batch) {
        const bool burst = batch % 200 >= 100 && batch % 200 < 120;
        append(stream, std::vector<Tuple>(burst ? 20'000 : 50, {batch * 100 + 1, 1, 7, 1}));
        stream.close(batch);
        stream.release(batch - 10);
        if (batch == 199) file = std::filesystem::file_size(region(fixture));
        if (batch % 200 == 199) {
            EXPECT_LT(stream.held_bytes(), 2u << 20);
        }
    }
    EXPECT_LE(std::filesystem::file_size(region(fixture)), file + file / 2);  // later bursts take the same places
}

/// Every tuple of batch b is (b, b, 7, b + row).
void check_copy(const std::byte* slice) {
    const Stream::SliceView view = slice_view(slice);
    const auto batch = static_cast<std::uint64_t>(view.batch);
    ASSERT_EQ(view.ts.size(), 1 + batch % 500);
    for (std::size_t row = 0; row < view.ts.size(); ++row) {
        ASSERT_EQ(view.ts[row], view.batch + 1);
        ASSERT_EQ(view.s[row], iri(batch + 1));
        ASSERT_EQ(view.o[row], iri(batch + row + 1));
        ASSERT_EQ(view.label[row], view.label[0]);
    }
}

TEST(Region, a_copy_that_the_sequence_word_vouches_for_is_whole) {
    Fixture fixture;
    Stream stream(fixture.store, fixture.dictionary, Fixture::timing(1));
    std::atomic<bool> done{false};
    std::atomic<std::uint64_t> copies{0};
    std::thread copied([&] {
        Reader reader(region(fixture));
        while (!done.load() && !::testing::Test::HasFatalFailure()) {
            reader.read([&](const std::byte* slice) {
                check_copy(slice);
                ++copies;
            });
        }
    });
    const auto end =
        std::chrono::steady_clock::now() + std::chrono::seconds(std::getenv("PENSTOCK_LONG") != nullptr ? 60 : 1);
    for (std::int64_t batch = 0; std::chrono::steady_clock::now() < end; ++batch) {
        std::vector<Tuple> tuples;
        const auto number = static_cast<std::uint64_t>(batch);
        for (std::uint64_t row = 0; row <= number % 500; ++row)
            tuples.push_back({batch + 1, number + 1, 7, number + row + 1});
        append(stream, tuples);
        stream.close(batch);
        stream.release(batch - 20);
    }
    done = true;
    copied.join();
    EXPECT_GT(copies.load(), 100u);
}

}  // namespace
}  // namespace penstock
