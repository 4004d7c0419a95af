// A node's side of RDMA: regions registered incrementally as they grow, and a queue pair for each engine. No code here
// runs during reads: the device serves them.
#ifdef PENSTOCK_RDMA

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "dataplane/rdma_device.hpp"
#include "dataplane/socket.hpp"
#include "dataplane/wire.hpp"

namespace penstock::dataplane {

namespace {

constexpr std::uint64_t kSegmentBytes = std::uint64_t{1} << 30;  // the maximum of one registration

/// A writable mapping, although nothing is written through it: soft-RoCE of Linux 6.1 cannot register a read-only
/// mapping of a file (EFAULT). The keys permit reads only.
class PinnedFile {
public:
    explicit PinnedFile(const MappedRegion& region) : bytes_(region.reserve_bytes()) {
        const Descriptor file(::open(region.path().c_str(), O_RDWR | O_CLOEXEC));
        struct stat status{};
        const bool same = file && ::fstat(file.get(), &status) == 0 && status.st_dev == region.device() &&
                          status.st_ino == region.inode();
        if (file && !same) throw Error(Fault::Retired, "another file has replaced it: " + region.path());
        base_ = file ? ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file.get(), 0)
                     : MAP_FAILED;
        if (base_ == MAP_FAILED)
            throw Error(Fault::Refused, "cannot map " + region.path() + ": " + std::generic_category().message(errno));
    }
    ~PinnedFile() { ::munmap(base_, bytes_); }
    PinnedFile(const PinnedFile&) = delete;
    PinnedFile& operator=(const PinnedFile&) = delete;
    std::byte* at(std::uint64_t offset) const { return static_cast<std::byte*>(base_) + offset; }

private:
    std::uint64_t bytes_;
    void* base_;
};

class Registration final : public RdmaRegistration {
public:
    Registration(std::shared_ptr<RdmaDevice> device, const MappedRegion& region)
        : device_(std::move(device)), region_(region) {}

    const std::vector<RdmaSegment>& segments() override {
        if (!file_) file_ = std::make_unique<PinnedFile>(region_);
        const std::uint64_t end = region_.bytes();
        std::uint64_t begin = segments_.empty() ? 0 : segments_.back().end;
        for (; begin < end; begin = segments_.back().end) add(begin, std::min(end, begin + kSegmentBytes));
        return segments_;
    }

private:
    void add(std::uint64_t begin, std::uint64_t end) {
        if (segments_.size() == wire::kMaxSegments) throw Error(Fault::Refused, "the region has too many segments");
        memory_.emplace_back(device_, file_->at(begin), end - begin, IBV_ACCESS_REMOTE_READ);
        const auto address = reinterpret_cast<std::uintptr_t>(file_->at(begin));
        segments_.push_back({begin, end, address, memory_.back().region().rkey, 0});
    }

    std::shared_ptr<RdmaDevice> device_;
    const MappedRegion& region_;
    std::unique_ptr<PinnedFile> file_;  // must outlive the registrations of its memory
    std::vector<RdmaMemory> memory_;
    std::vector<RdmaSegment> segments_;
};

class Host final : public RdmaHost {
public:
    explicit Host(std::shared_ptr<RdmaDevice> device) : device_(std::move(device)) {}

    std::shared_ptr<RdmaRegistration> registration(const MappedRegion& region) override {
        return std::make_shared<Registration>(device_, region);
    }
    std::shared_ptr<void> accept(const RdmaEndpoint& engine, RdmaEndpoint& node) override {
        auto pair = std::make_shared<RdmaQueuePair>(device_, 1);
        pair->connect(engine);
        node = pair->endpoint();
        return pair;
    }

private:
    std::shared_ptr<RdmaDevice> device_;
};

}  // namespace

std::unique_ptr<RdmaHost> open_rdma_host(const std::string& device) {
    return std::make_unique<Host>(RdmaDevice::open(device));
}

}  // namespace penstock::dataplane

#endif
