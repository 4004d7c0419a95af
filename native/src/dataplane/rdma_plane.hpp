// The data plane over RDMA: one-sided READs of a node's registered regions, without its processor (Wukong §5). The
// directory, the keys, and regions that cannot be registered use the TCP plane that also establishes the connection.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "dataplane/rdma_reader.hpp"
#include "dataplane/tcp_plane.hpp"

namespace penstock::dataplane {

class RdmaPlane final : public Plane {
public:
    /// Error(Refused) if the device cannot be opened.
    RdmaPlane(std::unique_ptr<TcpPlane> control, const std::string& device);

    /// Also requests the keys of all stable regions. Regions that cannot be registered are read over TCP.
    /// Error(Refused) if the node offers no RDMA.
    std::vector<RegionEntry> directory(Node node) override;
    Ticket post(std::span<const Read> reads) override;
    void wait(Ticket ticket) override;
    std::string_view transport(Node) const override { return "rdma"; }
    std::string remark(Node) const override { return remark_; }

private:
    struct Region {
        bool by_tcp;
        std::vector<RdmaSegment> segments;
        std::uint64_t end() const { return segments.empty() ? 0 : segments.back().end; }
    };
    struct Batch {
        Ticket tcp = 0;  // reads of regions without registration
        bool has_tcp = false;
        std::size_t left = 0;  // pieces not yet complete
        std::optional<Error> error;
    };

    void join();
    void fetch_keys(std::uint32_t number, Region& region);
    const Region& find(const Read& read);
    void cut(Ticket ticket, const Region& region, const Read& read, Batch& batch);
    void progress();
    void fail_all(const Error& error);
    void drop_reader(const Error& error);

    std::unique_ptr<TcpPlane> control_;
    std::shared_ptr<RdmaDevice> device_;
    std::unique_ptr<RdmaReader> reader_;
    std::uint64_t connection_ = 0;  // connection of control_ on which the reader's queue pair was negotiated
    std::uint64_t incarnation_ = 0;
    std::unordered_map<std::uint32_t, Region> regions_;
    std::map<Ticket, Batch> batches_;
    std::string remark_;
    Ticket last_ticket_ = 0;
    std::vector<RdmaPiece> waiting_;  // not yet posted; from waiting_begin_ on
    std::size_t waiting_begin_ = 0;
};

}  // namespace penstock::dataplane
