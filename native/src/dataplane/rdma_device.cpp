#ifdef PENSTOCK_RDMA

#include "dataplane/rdma_device.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <span>
#include <system_error>
#include <utility>

#include "dataplane/sha256.hpp"
#include "dataplane/wire.hpp"

namespace penstock::dataplane {

namespace {

constexpr std::uint32_t kReads = 16;  // the hardware's maximum in one direction of a connection
constexpr std::uint8_t kHops = 64;
constexpr std::uint8_t kAckTimeout = 16;  // 4.096 µs × 2^16 = 0.27 s until a packet is retransmitted
constexpr std::uint8_t kRetries = 7;      // retransmissions before the peer counts as unreachable
constexpr std::uint8_t kReceiverTimer = 12;

[[noreturn]] void refuse(const std::string& what) {
    throw Error(Fault::Refused, "no RDMA: " + what + ": " + std::generic_category().message(errno));
}

bool is_ipv4(const ibv_gid& gid) {
    static constexpr std::uint8_t kMapped[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return std::memcmp(gid.raw, kMapped, sizeof kMapped) == 0;
}

/// RoCE v1 cannot be routed; devices list both versions for one address. Soft-RoCE has v2 only.
bool is_version_2(const std::string& device, int index) {
    std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/gid_attrs/types/" + std::to_string(index));
    std::string type;
    return !std::getline(file, type) || type == "RoCE v2";
}

/// Owns the list of the machine's devices.
struct Devices {
    explicit Devices(const Verbs& v) : verbs(v), list(v.get_device_list(&count)) {}
    ~Devices() {
        if (list != nullptr) verbs.free_device_list(list);
    }
    Devices(const Devices&) = delete;
    Devices& operator=(const Devices&) = delete;

    const Verbs& verbs;
    int count = 0;
    ibv_device** list;
};

}  // namespace

bool built_with_rdma() { return true; }

std::vector<std::string> rdma_devices() {
    std::vector<std::string> names;
    try {
        const Verbs& verbs = Verbs::load();
        const Devices devices(verbs);
        for (int i = 0; devices.list != nullptr && i < devices.count; ++i)
            names.emplace_back(verbs.get_device_name(devices.list[i]));
    } catch (const Error&) {
        // Without the library there are no devices.
    }
    return names;
}

// ---- device

std::shared_ptr<RdmaDevice> RdmaDevice::open(const std::string& name) {
    const Verbs& verbs = Verbs::load();
    const Devices devices(verbs);
    std::string why = name.empty() ? "there is no device" : "there is no device " + name;
    for (int i = 0; devices.list != nullptr && i < devices.count; ++i) {
        if (!name.empty() && name != verbs.get_device_name(devices.list[i])) continue;
        try {
            return std::shared_ptr<RdmaDevice>(new RdmaDevice(verbs, devices.list[i]));
        } catch (const Error& error) {
            if (!name.empty()) throw;
            why = error.what();
        }
    }
    throw Error(Fault::Refused, why.starts_with("no RDMA") ? why : "no RDMA: " + why);
}

RdmaDevice::RdmaDevice(const Verbs& verbs, ibv_device* device) : verbs_(verbs), name_(verbs.get_device_name(device)) {
    context_ = verbs_.open_device(device);
    if (context_ == nullptr) refuse("device " + name_ + " cannot be opened");
    try {
        look_at_port();
        domain_ = verbs_.alloc_pd(context_);
        if (domain_ == nullptr) refuse("device " + name_ + " gives no protection domain");
    } catch (const Error&) {
        verbs_.close_device(context_);
        throw;
    }
}

RdmaDevice::~RdmaDevice() {
    verbs_.dealloc_pd(domain_);
    verbs_.close_device(context_);
}

void RdmaDevice::look_at_port() {
    // The library fills only the fields of the first version of ibv_port_attr; the others stay zero.
    ibv_port_attr port{};
    ibv_device_attr device{};
    if (verbs_.query_port(context_, kPort, reinterpret_cast<_compat_ibv_port_attr*>(&port)) != 0 ||
        verbs_.query_device(context_, &device) != 0)
        refuse("device " + name_ + " does not answer");
    if (port.state != IBV_PORT_ACTIVE) throw Error(Fault::Refused, "no RDMA: the port of " + name_ + " is not active");
    if (!find_gid(port.gid_tbl_len))
        throw Error(Fault::Refused, "no RDMA: " + name_ + " has no IPv4 address (only RoCE v2 over IPv4 is spoken)");
    mtu_ = port.active_mtu;
    reads_ = std::clamp<std::uint32_t>(
        static_cast<std::uint32_t>(std::min(device.max_qp_rd_atom, device.max_qp_init_rd_atom)), 1, kReads);
}

bool RdmaDevice::find_gid(int entries) {
    for (int i = 0; i < entries && i < 256; ++i) {
        if (verbs_.query_gid(context_, kPort, i, &gid_) != 0 || !is_ipv4(gid_) || !is_version_2(name_, i)) continue;
        gid_index_ = static_cast<std::uint8_t>(i);
        return true;
    }
    return false;
}

// ---- memory

RdmaMemory::RdmaMemory(std::shared_ptr<RdmaDevice> device, void* begin, std::size_t bytes, int access)
    : device_(std::move(device)), region_(device_->verbs().reg_mr(device_->domain(), begin, bytes, access)) {
    if (region_ != nullptr) return;
    const bool locked = errno == ENOMEM || errno == EPERM || errno == EAGAIN;
    refuse(std::to_string(bytes) + " bytes of memory cannot be registered" +
           (locked ? " (the limit of locked memory may be too low: ulimit -l)" : ""));
}

RdmaMemory::RdmaMemory(RdmaMemory&& other) noexcept
    : device_(std::move(other.device_)), region_(std::exchange(other.region_, nullptr)) {}

RdmaMemory::~RdmaMemory() {
    if (region_ != nullptr) device_->verbs().dereg_mr(region_);
}

// ---- queue pairs

RdmaQueuePair::RdmaQueuePair(std::shared_ptr<RdmaDevice> device, std::uint32_t depth)
    : device_(std::move(device)), first_packet_(wire::value_at<std::uint32_t>(random_digest()) & 0xFFFFFF) {
    const Verbs& verbs = device_->verbs();
    completions_ = verbs.create_cq(device_->context(), static_cast<int>(depth), nullptr, nullptr, 0);
    if (completions_ == nullptr) refuse("no completion queue");
    ibv_qp_init_attr attributes{};
    attributes.send_cq = attributes.recv_cq = completions_;
    attributes.qp_type = IBV_QPT_RC;
    attributes.cap = {depth, 1, 1, 1, 0};
    pair_ = verbs.create_qp(device_->domain(), &attributes);
    if (pair_ != nullptr) return;
    const int error = errno;
    verbs.destroy_cq(completions_);
    errno = error;
    refuse("no queue pair");
}

RdmaQueuePair::~RdmaQueuePair() {
    device_->verbs().destroy_qp(pair_);
    device_->verbs().destroy_cq(completions_);
}

RdmaEndpoint RdmaQueuePair::endpoint() const {
    RdmaEndpoint endpoint;
    std::copy(std::begin(device_->gid().raw), std::end(device_->gid().raw), endpoint.gid.begin());
    endpoint.queue_pair = pair_->qp_num;
    endpoint.first_packet = first_packet_;
    endpoint.mtu = static_cast<std::uint32_t>(device_->mtu());
    endpoint.reads = device_->reads();
    return endpoint;
}

void RdmaQueuePair::change(ibv_qp_attr& attributes, int mask) const {
    errno = device_->verbs().modify_qp(pair_, &attributes, mask | IBV_QP_STATE);
    if (errno != 0) refuse("the queue pair cannot be connected");
}

void RdmaQueuePair::connect(const RdmaEndpoint& other) {
    ibv_qp_attr start{};
    start.qp_state = IBV_QPS_INIT;
    start.port_num = RdmaDevice::kPort;
    start.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    change(start, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS);

    ibv_qp_attr receive{};
    receive.qp_state = IBV_QPS_RTR;
    receive.path_mtu = static_cast<ibv_mtu>(std::clamp<std::uint32_t>(other.mtu, IBV_MTU_256, device_->mtu()));
    receive.dest_qp_num = other.queue_pair;
    receive.rq_psn = other.first_packet & 0xFFFFFF;
    receive.max_dest_rd_atomic = static_cast<std::uint8_t>(device_->reads());
    receive.min_rnr_timer = kReceiverTimer;
    receive.ah_attr.is_global = 1;
    receive.ah_attr.port_num = RdmaDevice::kPort;
    std::copy(other.gid.begin(), other.gid.end(), std::begin(receive.ah_attr.grh.dgid.raw));
    receive.ah_attr.grh.sgid_index = device_->gid_index();
    receive.ah_attr.grh.hop_limit = kHops;
    change(receive, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                        IBV_QP_MIN_RNR_TIMER);

    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = kAckTimeout;
    send.retry_cnt = kRetries;
    send.rnr_retry = kRetries;
    send.sq_psn = first_packet_;
    send.max_rd_atomic = static_cast<std::uint8_t>(std::clamp<std::uint32_t>(other.reads, 1, device_->reads()));
    change(send, IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC);
}

}  // namespace penstock::dataplane

#endif
