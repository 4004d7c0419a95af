#include "dataplane/shared_plane.hpp"

#include <algorithm>
#include <utility>

namespace penstock::dataplane {

SharedPlane::SharedPlane(Node node, Address address, TcpOptions options)
    : node_(node), control_(node, std::move(address), std::move(options)) {}

std::vector<RegionEntry> SharedPlane::directory(Node node) {
    if (!control_.is_on_this_machine()) throw Error(Fault::Refused, "the node runs on another machine");
    std::vector<RegionEntry> entries = control_.directory(node);
    const bool same = incarnation_ == control_.incarnation();
    incarnation_ = control_.incarnation();
    const std::vector<RegionEntry> attached = local_.directory(node_);
    const auto has = [](const std::vector<RegionEntry>& all, RegionId id) {
        return std::any_of(all.begin(), all.end(), [&](const RegionEntry& entry) { return entry.id == id; });
    };
    for (const RegionEntry& entry : attached)
        if (!same || !has(entries, entry.id)) local_.detach(entry.id);
    for (const RegionEntry& entry : entries) {
        if (same && has(attached, entry.id)) continue;
        try {
            local_.attach(entry);
        } catch (const StorageError& error) {
            throw Error(Fault::Refused, error.what());
        }
    }
    return entries;
}

}  // namespace penstock::dataplane
