#include "dataplane/router.hpp"

#include <algorithm>
#include <exception>

namespace penstock::dataplane {

void Router::add(Node node, std::shared_ptr<Plane> plane) { planes_[node] = std::move(plane); }

void Router::remove(Node node) { planes_.erase(node); }

const std::shared_ptr<Plane>& Router::find(Node node) const {
    const auto found = planes_.find(node);
    if (found == planes_.end()) throw Error(Fault::Disconnected, "no plane leads to node " + std::to_string(node));
    return found->second;
}

Plane::Ticket Router::post(std::span<const Read> reads) {
    std::vector<Part> parts;
    const auto is_on_another_node = [&](const Read& read) { return read.region.node != reads.front().region.node; };
    if (!reads.empty() && std::none_of(reads.begin(), reads.end(), is_on_another_node)) {
        const Node node = reads.front().region.node;
        parts.push_back({find(node), find(node)->post(reads)});
    } else {
        parts = post_to_many(reads);
    }
    batches_.emplace(++last_ticket_, std::move(parts));
    return last_ticket_;
}

std::vector<Router::Part> Router::post_to_many(std::span<const Read> reads) {
    std::map<Node, std::vector<Read>> by_node;
    for (const Read& read : reads) by_node[read.region.node].push_back(read);
    std::vector<Part> parts;
    try {
        for (const auto& [node, its] : by_node) parts.push_back({find(node), find(node)->post(its)});
    } catch (...) {
        const auto error = std::current_exception();
        try {
            finish(parts);  // so that no buffer is written after this
        } catch (const Error&) {
            // Only the first failure is reported.
        }
        std::rethrow_exception(error);
    }
    return parts;
}

void Router::wait(Ticket ticket) {
    const auto batch = batches_.extract(ticket);
    if (batch.empty()) throw Error(Fault::Refused, "no such batch is posted");
    finish(batch.mapped());
}

/// Waits for all parts, then throws the first failure.
void Router::finish(const std::vector<Part>& parts) {
    std::exception_ptr error;
    for (const Part& part : parts) {
        try {
            part.plane->wait(part.ticket);
        } catch (const Error&) {
            if (!error) error = std::current_exception();
        }
    }
    if (error) std::rethrow_exception(error);
}

}  // namespace penstock::dataplane
