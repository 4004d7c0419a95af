#ifdef PENSTOCK_RDMA

#include "dataplane/rdma_reader.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>

namespace penstock::dataplane {

RdmaReader::Staging::Staging() {
    void* address = ::mmap(nullptr, kStagingBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (address == MAP_FAILED) throw Error(Fault::Refused, "no RDMA: no memory for its buffer");
    begin_ = static_cast<std::byte*>(address);
}

RdmaReader::Staging::~Staging() { ::munmap(begin_, kStagingBytes); }

RdmaReader::RdmaReader(std::shared_ptr<RdmaDevice> device)
    : device_(std::move(device)),
      memory_(device_, staging_.begin(), kStagingBytes, IBV_ACCESS_LOCAL_WRITE),
      pair_(device_, kDepth) {}

RdmaReader::~RdmaReader() = default;

/// Allocates from the ring, which is freed in the order of allocation. Returns 0 if there is no room.
std::size_t RdmaReader::reserve(std::uint32_t length, std::byte*& staged) {
    const std::size_t end = (staged_begin_ + staged_bytes_) % kStagingBytes;
    const std::size_t skipped = end + length > kStagingBytes ? kStagingBytes - end : 0;
    const std::size_t room = skipped + length;
    if (staged_bytes_ + room > kStagingBytes) return 0;
    staged = staging_.begin() + (skipped > 0 ? 0 : end);
    staged_bytes_ += room;
    return room;
}

std::size_t RdmaReader::post(std::span<const RdmaPiece> pieces) {
    std::array<ibv_send_wr, kChain> requests;
    std::array<ibv_sge, kChain> local;
    std::size_t posted = 0;
    while (posted < pieces.size()) {
        std::size_t n = 0;
        for (; n < kChain && posted + n < pieces.size() && flying_.size() < kDepth; ++n) {
            const RdmaPiece& piece = pieces[posted + n];
            std::byte* staged = nullptr;
            const std::size_t room = reserve(piece.length, staged);
            if (room == 0) break;
            flying_.push_back({piece, staged, room, false});
            local[n] = {reinterpret_cast<std::uintptr_t>(staged), piece.length, memory_.region().lkey};
            requests[n] = {};
            requests[n].opcode = IBV_WR_RDMA_READ;
            requests[n].sg_list = &local[n];
            requests[n].num_sge = 1;
            requests[n].wr.rdma.remote_addr = piece.address;
            requests[n].wr.rdma.rkey = piece.key;
            if (n > 0) requests[n - 1].next = &requests[n];
        }
        if (n == 0) break;
        requests[n - 1].send_flags = IBV_SEND_SIGNALED;
        flying_.back().closes_chain = true;
        ibv_send_wr* refused = nullptr;
        if (::ibv_post_send(pair_.pair(), requests.data(), &refused) != 0)
            throw Error(Fault::Disconnected, "the RDMA device takes no more reads");
        posted += n;
    }
    return posted;
}

/// How many of the first pieces in flight have completed. A reliable connection completes in order, so the completion
/// of a chain's last READ covers all of them.
std::size_t RdmaReader::arrived() {
    std::array<ibv_wc, 8> completions;
    const int n = ::ibv_poll_cq(pair_.completions(), completions.size(), completions.data());
    if (n < 0) throw Error(Fault::Disconnected, "the RDMA device's completions cannot be read");
    std::size_t pieces = 0;
    for (int i = 0; i < n; ++i) {
        const ibv_wc_status status = completions[static_cast<std::size_t>(i)].status;
        const std::string words = std::string("RDMA: ") + device_->verbs().wc_status_str(status);
        if (status == IBV_WC_REM_ACCESS_ERR) throw Error(Fault::Retired, words + ": the node has taken the key back");
        if (status != IBV_WC_SUCCESS) throw Error(Fault::Disconnected, words);
        while (!flying_.at(pieces++).closes_chain) {
        }
    }
    return pieces;
}

std::uint64_t RdmaReader::take_first() {
    const Flying& first = flying_.front();
    std::memcpy(first.piece.into, first.staged, first.piece.length);
    staged_begin_ = (staged_begin_ + first.room) % kStagingBytes;
    staged_bytes_ -= first.room;
    const std::uint64_t batch = first.piece.batch;
    flying_.pop_front();
    return batch;
}

}  // namespace penstock::dataplane

#endif
