// One plane over all nodes: posts a batch to every node involved before it waits for the first answer.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/plane.hpp"

namespace penstock::dataplane {

class Router final : public Plane {
public:
    /// Sets or replaces the plane of this node.
    void add(Node node, std::shared_ptr<Plane> plane);
    void remove(Node node);

    std::vector<RegionEntry> directory(Node node) override { return find(node)->directory(node); }
    Ticket post(std::span<const Read> reads) override;
    void wait(Ticket ticket) override;
    const std::byte* mapped(RegionId id) override { return find(id.node)->mapped(id); }
    std::string_view transport(Node node) const override { return find(node)->transport(node); }
    std::string remark(Node node) const override { return find(node)->remark(node); }

private:
    struct Part {
        std::shared_ptr<Plane> plane;
        Ticket ticket;
    };
    const std::shared_ptr<Plane>& find(Node node) const;
    std::vector<Part> post_to_many(std::span<const Read> reads);
    void finish(const std::vector<Part>& parts);

    std::map<Node, std::shared_ptr<Plane>> planes_;
    std::map<Ticket, std::vector<Part>> batches_;
    Ticket last_ticket_ = 0;
};

}  // namespace penstock::dataplane
