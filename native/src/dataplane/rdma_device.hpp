// A device with its protection domain, memory regions and queue pairs: owning wrappers of libibverbs' objects.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/rdma.hpp"
#include "dataplane/rdma_verbs.hpp"

namespace penstock::dataplane {

/// An open device and one protection domain on it. Objects created from it share its ownership.
class RdmaDevice {
public:
    /// Opens the named device, or the first usable one. Error(Refused).
    static std::shared_ptr<RdmaDevice> open(const std::string& name);
    ~RdmaDevice();
    RdmaDevice(const RdmaDevice&) = delete;
    RdmaDevice& operator=(const RdmaDevice&) = delete;

    const Verbs& verbs() const { return verbs_; }
    ibv_context* context() const { return context_; }
    ibv_pd* domain() const { return domain_; }
    const std::string& name() const { return name_; }

    const ibv_gid& gid() const { return gid_; }
    std::uint8_t gid_index() const { return gid_index_; }
    ibv_mtu mtu() const { return mtu_; }
    std::uint32_t reads() const { return reads_; }  // the maximum in flight in one direction

    static constexpr std::uint8_t kPort = 1;

private:
    RdmaDevice(const Verbs& verbs, ibv_device* device);
    void look_at_port();
    bool find_gid(int entries);

    const Verbs& verbs_;
    std::string name_;
    ibv_context* context_ = nullptr;
    ibv_pd* domain_ = nullptr;
    ibv_gid gid_{};
    std::uint8_t gid_index_ = 0;
    ibv_mtu mtu_ = IBV_MTU_1024;
    std::uint32_t reads_ = 1;
};

/// Memory that a device may access.
class RdmaMemory {
public:
    /// `access`: IBV_ACCESS_*. Error(Refused) if the memory cannot be locked.
    RdmaMemory(std::shared_ptr<RdmaDevice> device, void* begin, std::size_t bytes, int access);
    ~RdmaMemory();
    RdmaMemory(RdmaMemory&& other) noexcept;
    RdmaMemory& operator=(RdmaMemory&&) = delete;

    const ibv_mr& region() const { return *region_; }

private:
    std::shared_ptr<RdmaDevice> device_;
    ibv_mr* region_;
};

/// A queue pair of a reliable connection, and the completion queue of its requests.
class RdmaQueuePair {
public:
    RdmaQueuePair(std::shared_ptr<RdmaDevice> device, std::uint32_t depth);
    ~RdmaQueuePair();
    RdmaQueuePair(const RdmaQueuePair&) = delete;
    RdmaQueuePair& operator=(const RdmaQueuePair&) = delete;

    RdmaEndpoint endpoint() const;
    /// Connects; the pair can then read and be read. Error(Refused).
    void connect(const RdmaEndpoint& other);

    ibv_qp* pair() const { return pair_; }
    ibv_cq* completions() const { return completions_; }

private:
    void change(ibv_qp_attr& attributes, int mask) const;

    std::shared_ptr<RdmaDevice> device_;
    ibv_cq* completions_ = nullptr;
    ibv_qp* pair_ = nullptr;
    std::uint32_t first_packet_;
};

}  // namespace penstock::dataplane
